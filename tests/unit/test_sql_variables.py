from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import name_value, string_value
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import TokenKind, meaningful, split, tokenize
from spark_runner.sql.text.variables import expand


def expanded(text: str, variables: Mapping[str, str]) -> Passage:
    source = ScriptSource("s.sql", text)
    (statement,) = split(source)
    return expand(source, statement, variables)


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        ("a ${n} b", {"n": "5"}, "a 5 b"),
        ("a ${n:-7} b", {}, "a 7 b"),
        ("a ${n:-7} b", {"n": "5"}, "a 5 b"),
        ("a ${n:-} b", {}, "a  b"),
        ("a ${n} b", {"n": ""}, "a  b"),
        ("a ${a.b-c_1}", {"a.b-c_1": "x"}, "a x"),
        ("a '${n}' b", {"n": "it's"}, r"a 'it\'s' b"),
        ("a '${n}'", {"n": "\\"}, r"a '\\'"),
        ('a "${n}"', {"n": 'say "hi"'}, r'a "say \"hi\""'),
        ("a `${n}`", {"n": "b`c"}, "a `b``c`"),
        ("a r'${n}'", {"n": "\\d"}, r"a r'\d'"),
        ("a 'x${n}y${m}z'", {"n": "1", "m": "2"}, "a 'x1y2z'"),
        (r"a '\${n}'", {}, r"a '\${n}'"),
        ("a -- ${none}\n ${n}", {"n": "5"}, "a -- ${none}\n 5"),
        ("a /* ${none} */ ${n}", {"n": "5"}, "a /* ${none} */ 5"),
        ("a /*+ REPARTITION(${n}) */ b", {"n": "5"}, "a /*+ REPARTITION(5) */ b"),
        ("a ${n}", {"n": "${m}", "m": "no"}, "a ${m}"),
        ("a ${n}", {"n": "x + 'y;'"}, "a x + 'y;'"),
    ],
)
def test_variables_are_replaced_where_they_stand(text: str, variables: dict[str, str], expected: str) -> None:
    assert expanded(text, variables).text == expected


@pytest.mark.parametrize(
    ("text", "variables", "column", "message"),
    [
        ("a ${nam}", {"name": "x"}, 3, "unknown variable 'nam'; did you mean 'name'?"),
        ("a ${nam}", {}, 3, "unknown variable 'nam'; give it a value, or a default: ${nam:-...}"),
        ("a 'b ${nam}'", {}, 6, "unknown variable 'nam'"),
        ("a ${env:HOME}", {}, 3, "the reference ${env:HOME} must be in quotes"),
        ("a '${secret:a/b:-c}'", {}, 4, "'${secret:a/b:-c}' is not a reference: write ${secret:scope/key}"),
        ("a ${}", {}, 3, "'${}' is not a variable"),
        ("a ${n}", {"n": "1; DROP TABLE x"}, 3, "the value of ${n} holds a ';'; put it in quotes"),
        ("a ${n} b", {"n": "1 -- "}, 3, "the value of ${n} holds a comment"),
        ("a ${n} b", {"n": "/* x */"}, 3, "the value of ${n} holds a comment"),
        ("a ${n} b ${n}", {"n": "'"}, 3, "the value of ${n} cannot be pasted here"),
        ("a -${n} b", {"n": "-1"}, 4, "changes where comments and quotes begin"),
        ("a r'${n}'", {"n": "b'c"}, 5, "would end the string"),
    ],
)
def test_a_variable_that_cannot_be_replaced_is_shown(
    text: str, variables: dict[str, str], column: int, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        expanded(text, variables)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)


@given(st.text(max_size=30), st.sampled_from("'\"`"))
def test_a_value_never_breaks_out_of_its_quotes_and_arrives_unchanged(value: str, quote: str) -> None:
    passage = expanded(f"a {quote}<${{v}}>{quote} b", {"v": value})
    tokens = [
        token for token in tokenize(ScriptSource("s.sql", passage.text)) if token.kind is not TokenKind.SPACE
    ]
    assert len(tokens) == 3
    read = name_value if quote == "`" else string_value
    assert read(tokens[1].text) == f"<{value}>"


@given(st.text(alphabet="ab1 +'\"`;-/*\n\\$", max_size=12))
def test_a_value_outside_of_quotes_changes_no_token_but_its_own(value: str) -> None:
    try:
        passage = expanded("a ${v} 'b' -- c\n d", {"v": value})
    except SqlError as error:
        assert error.column == 3  # noqa: PT017 - both ends are right, and each has its own claim
        return
    kinds = [token.kind for token in tokenize(ScriptSource("s.sql", passage.text))]
    assert TokenKind.END not in kinds
    assert kinds.count(TokenKind.COMMENT) == 1


@given(
    st.lists(
        st.sampled_from(["a", "1", ".", ".5", " ", "'${v}'", "${v}", "(", ")", "-- c\n", "/* c */", "'s'"])
    ),
    st.text(alphabet="ab1.+'-", max_size=4),
)
def test_the_tokens_of_a_statement_are_those_of_its_text(pieces: list[str], value: str) -> None:
    source = ScriptSource("s.sql", "".join(pieces))
    try:
        passages = [expand(source, statement, {"v": value}) for statement in split(source)]
    except SqlError:  # the value does not fit there
        return
    for passage in passages:
        own = tokenize(ScriptSource("s.sql", passage.text))
        assert passage.tokens == [token for token in own if meaningful(token)]


def test_the_tokens_of_a_part_begin_at_its_text() -> None:
    passage = expanded("b /* c */ (a.b, 'x${v}') -- d", {"v": "1"})
    part = passage.part(passage.text.index("a."), passage.text.index(")"))
    assert [(token.text, token.start) for token in part.tokens] == [
        *(("a", 0), (".", 1), ("b", 2), (",", 3), ("'x1'", 5))
    ]


def test_text_after_a_value_of_many_lines_keeps_its_position() -> None:
    passage = expanded("a ${v} b\n c '${v}' d", {"v": "1\n2\n3"})
    assert passage.position(passage.text.index("b")) == (1, 8)
    assert passage.position(passage.text.index("c")) == (2, 2)
    assert passage.position(passage.text.index("d")) == (2, 11)
    assert passage.position(passage.text.index("3")) == (1, 3)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'a'", "a"),
        ("''", ""),
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        ('"a""b"', 'a"b'),
        (r"'\t\n\\\q'", "\t\n\\q"),
        (r"'\u0041\U0001F600\101'", "A😀A"),
        (r"'100\% \_'", r"100\% \_"),
        (r"'\\''x'", "\\'x"),
        (r"r'\t'", r"\t"),
        (r'R"\t"', r"\t"),
    ],
)
def test_a_string_literal_means_what_it_means_to_spark(literal: str, value: str) -> None:
    assert string_value(literal) == value
