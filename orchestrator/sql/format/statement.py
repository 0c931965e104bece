"""The canonical form of one statement."""

from collections.abc import Sequence

from orchestrator.sql.format.catalogs import FIRST_WORDS, catalog_lines, is_namespace, namespace_lines
from orchestrator.sql.format.keywords import head, with_keywords
from orchestrator.sql.format.layout import STEP, WIDTH, expression_lines, group_lines, query_lines
from orchestrator.sql.format.pieces import Group, Node, Piece, end_of_name, flat, pieces, tree
from spark_runner.sql.grammar.query import QUERY_WORDS
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, meaningful, tokenize

MAX_NESTING = 40  # of parentheses; a statement beyond it stays as it is
_SET_HEADS = (
    ("EXECUTE", "STATEMENT", "SET", "BEGIN"),
    ("STATEMENT", "SET", "BEGIN"),
    ("BEGIN", "STATEMENT", "SET"),
)


def formatted(tokens: Sequence[SqlToken], indent: int = 0, newline: str = "\n") -> str:
    """The statement of these tokens; as written if that cannot be broken into lines without a doubt.

    Comments and texts of several lines belong to their lines, so a statement with one stays as it is; so does
    SET, whose value is text.
    """
    written = "".join(token.text for token in tokens)
    if any(not meaningful(token) and token.kind is TokenKind.COMMENT for token in tokens):
        return written
    if any("\n" in token.text and meaningful(token) for token in tokens):
        return written
    given = pieces(tokens)
    if given[0].is_word("SET", "RESET"):
        return written if given[0].text.isupper() else given[0].text.upper() + written[len(given[0].text) :]
    if _nesting(given) > MAX_NESTING:
        return written
    lines = _lines(given, indent)
    if lines is None:
        return written
    text = newline.join(lines).lstrip()
    return text if _is_same(given, text) else written


def set_begins(tokens: Sequence[SqlToken]) -> bool:
    """Whether a statement set begins with this statement."""
    words = [token.text.upper() for token in tokens if meaningful(token)][:4]
    return any(tuple(words[: len(head)]) == head for head in _SET_HEADS)


def _lines(given: Sequence[Piece], indent: int) -> list[str] | None:
    first = given[0]
    lines: list[str] | None = None
    if first.is_word("CREATE"):
        lines = _create(given, indent)
    elif first.is_word("INSERT", "EXPLAIN"):
        lines = _with_query(given, indent)
    elif first.is_word(*QUERY_WORDS) or first.token.text == "(":
        nodes = tree(with_keywords(given))
        lines = None if nodes is None else query_lines(nodes, indent)
    elif set_begins([piece.token for piece in given]):
        lines = _set(given, indent)
    elif first.is_word("ASSERT"):
        nodes = tree([*head(given[:1]), *with_keywords(given[1:], "SELECT ")])
        lines = None if nodes is None else expression_lines(nodes, indent)
    elif first.is_word("CACHE", "UNCACHE"):
        lines = [" " * indent + flat([*head(given[:-1]), given[-1]])]
    elif first.is_word(*FIRST_WORDS):
        lines = catalog_lines(given, indent)
    elif first.is_word("END"):
        lines = [" " * indent + flat(head(given))]
    return lines


def _set(given: Sequence[Piece], indent: int) -> list[str] | None:
    """The words of a set, and its first INSERT on lines of its own."""
    words = next((index for index, piece in enumerate(given) if piece.is_word("INSERT")), len(given))
    first = [" " * indent + flat(head(given[:words]))]
    if words == len(given):
        return first
    rest = _with_query(given[words:], indent + STEP)
    return None if rest is None else [*first, *rest]


def _with_query(given: Sequence[Piece], indent: int) -> list[str] | None:
    """INSERT and EXPLAIN: a head, and a query."""
    start = _query_start(given)
    if start is None:
        return None
    return _head_and_query(_raised_but_names(given[:start]), given[start:], indent)


def _head_and_query(words: Sequence[Piece], query: Sequence[Piece], indent: int) -> list[str] | None:
    nodes = tree(with_keywords(query))
    if nodes is None:
        return None
    whole = flat((*words, *nodes))
    if len(whole) + indent <= WIDTH:
        return [" " * indent + whole]
    return [" " * indent + flat(words), *query_lines(nodes, indent)]


def _query_start(given: Sequence[Piece]) -> int | None:
    """The index of the first piece of the query; a table may have the name of a keyword."""
    is_insert, target_seen, behind_options = False, False, 0
    for index, piece in enumerate(given):
        if index < behind_options:
            continue
        if piece.is_word("INTO", "OVERWRITE") and not is_insert:
            is_insert = True
            continue
        is_start = piece.is_word(*QUERY_WORDS) or piece.token.text == "("
        behind = given[index + 1] if index + 1 < len(given) else None
        is_optional = piece.is_word("TABLE") and is_insert and not target_seen and behind is not None
        if is_optional and not (behind is not None and behind.is_word(*QUERY_WORDS, "BY")):
            continue
        if is_insert and not target_seen:
            target_seen = True
            behind_options = end_of_name(given, index)
            continue
        if (
            target_seen
            and piece.is_word("WITH", "OPTIONS")
            and behind is not None
            and behind.token.text == "("
        ):
            behind_options = _end_of_group(given, index + 1)
            continue
        if is_start:
            return index
    return None


def _end_of_group(given: Sequence[Piece], index: int) -> int:
    """The index behind the parenthesis that closes the one at `index`."""
    depth = 0
    while index < len(given):
        depth += (given[index].token.text == "(") - (given[index].token.text == ")")
        index += 1
        if depth == 0:
            break
    return index


def _raised_but_names(words: Sequence[Piece]) -> list[Piece]:
    """A head in upper case, without the name of the table."""
    target = next((i for i, each in enumerate(words) if each.is_word("INTO", "OVERWRITE")), None)
    if target is None:
        return head(words)
    target += 1
    if target + 1 < len(words) and words[target].is_word("TABLE") and not words[target + 1].is_word("BY"):
        target += 1
    end = end_of_name(words, target)
    return [*head(words[:target]), *words[target:end], *head(words[end:])]


_CREATED = ("TABLE", "VIEW", "FUNCTION")
_FUNCTION_WORDS = ("AS", "LANGUAGE", "PYTHON", "RETURNS")


def _create(given: Sequence[Piece], indent: int) -> list[str] | None:
    if is_namespace(given):
        return namespace_lines(given, indent)
    kind = next((i for i, each in enumerate(given[:5]) if each.is_word(*_CREATED)), None)
    if kind is None or kind + 2 >= len(given):
        return None
    name = kind + 1
    conditions = [piece.token.text.upper() for piece in given[name : name + 3]]
    if conditions == ["IF", "NOT", "EXISTS"]:  # of a table of a catalog
        name += 3
    end = end_of_name(given, name)
    words, rest = [*head(given[:name]), *given[name:end]], given[end:]
    if given[kind].is_word("FUNCTION"):
        behind = [head([each])[0] if each.is_word(*_FUNCTION_WORDS) else each for each in rest]
        return [" " * indent + flat((*words, *behind))]
    if given[kind].is_word("VIEW"):
        if not rest or not rest[0].is_word("AS") or len(rest) == 1:
            return None
        return _head_and_query([*words, *head(rest[:1])], rest[1:], indent)
    nodes = tree([*words, *rest])
    return None if nodes is None else _table_lines(_with_raised_options(nodes, len(words)), indent)


def _with_raised_options(nodes: Sequence[Node], start: int) -> list[Node]:
    """From `start` on USING, OPTIONS and WITH in upper case, behind the name of the table and its columns."""
    found = list(nodes)
    for index in range(start, len(found)):
        node = found[index]
        if isinstance(node, Piece) and node.is_word("USING", "OPTIONS", "WITH"):
            before = found[index - 1]
            is_name = index > start and isinstance(before, Piece) and before.is_word("USING")
            found[index] = node if is_name else head([node])[0]
    return found


def _table_lines(nodes: Sequence[Node], indent: int) -> list[str]:
    whole = flat(nodes)
    if len(whole) + indent <= WIDTH:
        return [" " * indent + whole]
    groups = [index for index, node in enumerate(nodes) if isinstance(node, Group)]
    lines, start = list[str](), 0
    for index in groups:
        rest = flat(nodes[start:])
        if len(rest) + indent <= WIDTH:
            break
        group = nodes[index]
        if isinstance(group, Group):
            lines.append(" " * indent + flat((*nodes[start:index], group.opening)))
            lines += group_lines(group, indent + STEP)
            nodes = [*nodes[:index], group.closing, *nodes[index + 1 :]]
            start = index
    return [*lines, " " * indent + flat(nodes[start:])]


def _nesting(given: Sequence[Piece]) -> int:
    depth = deepest = 0
    for piece in given:
        if piece.token.kind is TokenKind.SYMBOL:
            depth += (piece.token.text in "([{") - (piece.token.text in ")]}")
            deepest = max(deepest, depth)
    return deepest


def _is_same(given: Sequence[Piece], text: str) -> bool:
    """Whether the text has the same tokens, but for the case of words."""
    try:
        found = [token for token in tokenize(ScriptSource("", text)) if meaningful(token)]
    except SqlError:
        return False
    if len(found) != len(given):
        return False
    return all(
        one.text == piece.token.text
        or (one.is_word(piece.token.text.upper()) and one.kind is piece.token.kind)
        for one, piece in zip(found, given, strict=True)
    )
