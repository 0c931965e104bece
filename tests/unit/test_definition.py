import ast
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.definition import MAX_DEFINITION_BYTES, Definition, build_definition, checked
from orchestrator.model.definition_files import definition_of_program, load_definition, parse_definition
from orchestrator.model.definition_parts import Callback, CheckpointUse, Retry, Timeout
from orchestrator.model.errors import DefinitionError
from orchestrator.model.fields import parse_seconds
from orchestrator.model.plan import compile_program
from orchestrator.model.schedule import Schedule
from orchestrator.model.spark import Executor, Spark
from orchestrator.model.tuning import Tuning

MINIMAL: dict[str, Any] = {"name": "flights", "script": "SELECT 1"}


def test_a_definition_names_a_script_whose_text_then_travels_with_it(tmp_path: Path) -> None:
    (tmp_path / "flights.sql").write_text("INSERT INTO t SELECT 1;", encoding="utf-8")
    definition = parse_definition("name: flights\nscript: flights.sql", "job.yaml", tmp_path)
    assert definition.script == "INSERT INTO t SELECT 1;"
    assert definition.file == "flights.sql"
    assert definition.directory == str(tmp_path)


def test_a_definition_may_hold_the_script_itself(tmp_path: Path) -> None:
    definition = parse_definition(
        "name: x\nscript:\n  text: |\n    INSERT INTO t\n    SELECT 1;", "-", tmp_path
    )
    assert definition.script == "INSERT INTO t\nSELECT 1;"
    assert definition.directory == str(tmp_path)


def test_json_is_yaml(tmp_path: Path) -> None:
    text = json.dumps(
        {"name": "x", "script": {"text": "SELECT 1"}, "retry": {"delay": "90s", "on": ["lost"]}}
    )
    definition = parse_definition(text, "job.json", tmp_path)
    assert (definition.retry.delay, definition.retry.on) == (90.0, ("lost",))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"name": "x", "scirpt": "a"}, "unknown field 'scirpt'; did you mean 'script'?"),
        ({**MINIMAL, "spark": {"masterr": "local"}}, "unknown field 'spark.masterr'; did you mean 'master'?"),
        ({**MINIMAL, "spark": {"driver": {"memry": "1g"}}}, "did you mean 'memory'?"),
        ({**MINIMAL, "qqq": 1}, "unknown field 'qqq'; known here: "),
        ({"script": "a"}, "field 'name' is missing"),
        ({"name": "a/b", "script": "a"}, "field 'name'"),
        ({"name": "x"}, "exactly one of 'script' (SQL), 'python' and 'jar'"),
        ({"name": "x", "script": "a", "python": "b"}, "exactly one of"),
        ({**MINIMAL, "spark": {"master": "mesos://x"}}, "unknown master 'mesos://x'"),
        ({**MINIMAL, "spark": {"driver": {"memory": "lots"}}}, "'lots' is not an amount of memory"),
        ({**MINIMAL, "retry": {"delay": "soon"}}, "'soon' is not a duration"),
        ({**MINIMAL, "retry": {"attempts": 0}}, "field 'retry.attempts'"),
        ({**MINIMAL, "retry": {"on": ["bad-luck"]}}, "field 'retry.on"),
        ({**MINIMAL, "directory": "data"}, "field 'directory': 'data' is a relative path"),
        ({**MINIMAL, "retry": {"on": ["definition"]}}, "field 'retry.on"),
        ({**MINIMAL, "retry": {"on": ["timeout"]}}, "'timeout.on_run' is 'fail': set 'on_run: retry'"),
        ({**MINIMAL, "retry": {"on": ["timeout"]}, "timeout": {"on_run": "demote"}}, "is 'demote': set"),
    ],
)
def test_a_mistake_is_named_with_its_field(document: dict[str, object], words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        build_definition(document, "job.yaml")
    assert str(caught.value).startswith("job.yaml: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("given", ["data", "../{name}/data", "{folder}/data", "~/data"])
def test_a_directory_that_a_definition_gives_is_relative_to_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "job.sql").write_text("SELECT 1")
    directory = given.format(name=tmp_path.name, folder=tmp_path)
    text = f"name: job\nscript: job.sql\ndirectory: {directory}"
    assert parse_definition(text, "job.yaml", tmp_path).directory == str(tmp_path / "data")


def test_timeouts_are_retried_as_on_run_says_and_may_be_named_beside_it() -> None:
    document = {**MINIMAL, "retry": {"on": ["timeout", "user"]}, "timeout": {"on_run": "retry"}}
    assert build_definition(document, "job.yaml").retry.on == ("timeout", "user")


def test_every_mistake_has_a_line_of_its_own() -> None:
    with pytest.raises(DefinitionError) as caught:
        build_definition({"nam": "x", "retry": {"attempts": -1}, "script": "a"}, "job.yaml")
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("text", ["[1, 2]", "just words", "", "a: b: c", "{"])
def test_text_that_is_no_mapping_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"job\.yaml:.* "):
        parse_definition(text, "job.yaml", tmp_path)


def test_a_script_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"missing\.sql: cannot be read: No such file"):
        parse_definition("name: x\nscript: missing.sql", "job.yaml", tmp_path)
    (tmp_path / "latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    with pytest.raises(DefinitionError, match=r"latin\.sql: is not UTF-8"):
        definition_of_program(tmp_path / "latin.sql")
    (tmp_path / "folder.sql").mkdir()
    with pytest.raises(DefinitionError, match=r"folder\.sql: cannot be read: Is a directory"):
        definition_of_program(tmp_path / "folder.sql")


def test_a_definition_that_is_too_large_is_refused_before_it_is_enqueued() -> None:
    with pytest.raises(DefinitionError, match="the limit is 393,216"):
        build_definition({"name": "x", "script": "x" * MAX_DEFINITION_BYTES}, "job.yaml")


def test_a_script_by_itself_is_a_definition_named_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "daily report (2).py"
    path.write_text("print(1)", encoding="utf-8")
    definition = definition_of_program(path)
    assert definition.name == "daily-report--2-"
    assert (definition.python, definition.script) == ("print(1)", "")


def test_numbers_and_booleans_of_yaml_become_the_text_that_spark_wants() -> None:
    definition = build_definition(
        {**MINIMAL, "spark": {"conf": {"spark.a": 4, "spark.b": True}}, "variables": {"n": 5}}, "job.yaml"
    )
    assert definition.spark.conf == {"spark.a": "4", "spark.b": "true"}
    assert definition.variables == {"n": "5"}


def test_a_stored_definition_is_read_back_as_it_was() -> None:
    definition = build_definition({**MINIMAL, "retry": {"delay": "1m"}, "labels": {"a": "b"}}, "x")
    stored = definition.model_dump(mode="json", exclude_defaults=True)
    assert Definition.model_validate(json.loads(json.dumps(stored))) == definition


def test_the_delay_grows_by_its_factor_up_to_its_limit() -> None:
    definition = build_definition({**MINIMAL, "retry": {"delay": 10, "factor": 3, "max_delay": 50}}, "x")
    assert [definition.retry.delay_after(n) for n in (1, 2, 3, 50)] == [10, 30, 50, 50]


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("30s", 30), ("1.5m", 90), ("2h", 7200), ("1 d", 86400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "-5s", "5 weeks", "s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_seconds(text)


def test_the_definition_in_the_reference_is_accepted(tmp_path: Path) -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
    block = reference.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "flights.sql").write_text("SELECT 1", encoding="utf-8")
    definition = parse_definition(block, "reference.md", tmp_path)
    assert definition.retry.on == ("lost", "submission", "infrastructure", "memory", "user")
    assert definition.spark.conf == {"spark.sql.shuffle.partitions": "4"}


def test_plain_words_of_yaml_keep_their_text(tmp_path: Path) -> None:
    text = (
        "name: x\nscript: {text: SELECT 1}\nvariables:\n"
        "  {country: NO, time: 12:30:00, code: 010, version: 1.10, n: 7, f: 1.5, yes: on, t: true,"
        " d: 2026-01-02}"
    )
    assert parse_definition(text, "job.yaml", tmp_path).variables == {
        "country": "NO",
        "time": "12:30:00",
        "code": "010",
        "version": "1.10",
        "n": "7",
        "f": "1.5",
        "yes": "on",
        "t": "true",
        "d": "2026-01-02",
    }


def test_anchors_and_merges_of_yaml_work(tmp_path: Path) -> None:
    text = "name: x\nscript: {text: SELECT 1}\nlabels: &l {a: b}\nvariables: {<<: *l, c: d}"
    assert parse_definition(text, "job.yaml", tmp_path).variables == {"a": "b", "c": "d"}


def test_json_with_escapes_and_tabs_is_read(tmp_path: Path) -> None:
    text = '{"name": "x",\n\t"script": {"text": "SELECT 1"},\n\t"labels": {"x": "\\ud83d\\ude00"}}'
    assert parse_definition(text, "job.json", tmp_path).labels == {"x": "\N{GRINNING FACE}"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "name: x\nname: y\nscript: {text: a}",
            "job.yaml:2:1: not valid YAML or JSON: field 'name' is given twice",
        ),
        ('{"name": "x", "name": "y"}', "field 'name' is given twice"),
        ("name: x\nscript: {text: a}\nvariables: {x: null}", "not nothing"),
        ("name: x\nscript: {text: a}\nvariables: {x: [1]}", "not list"),
        ("name: x\nscript: {text: a}\nspark: {conf: {x: 1}}", "'x' does not start with 'spark.'"),
        ("name: x\nscript: {text: a}\nspark: {master: 'local[0]'}", ": write local,"),
        ("name: x\nscript: {text: a}\nspark: {driver: {memory: 0g}}", "is not an amount of memory"),
        ("name: x\npython: {text: a}\nvariables: {x: 1}", "'variables' are for SQL scripts"),
        ("name: x\nscript: {text: a}\narguments: [1]", "'arguments' are for programs"),
        ("[" * 3000, "nested too deeply"),
        ("2001-99-99: 1", "unknown field '2001-99-99'"),
    ],
)
def test_a_definition_without_a_valid_meaning_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_definition(text, "job.yaml", tmp_path)
    assert words in str(caught.value)


def test_an_empty_file_is_said_to_be_empty_and_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "empty.sql").write_text(" \n", encoding="utf-8")
    with pytest.raises(DefinitionError, match=r"empty\.sql: is empty"):
        definition_of_program(tmp_path / "empty.sql")
    (tmp_path / "bom.sql").write_text("SELECT 1", encoding="utf-8-sig")
    assert definition_of_program(tmp_path / "bom.sql").script == "SELECT 1"


def test_a_python_program_that_cannot_be_parsed_is_refused_with_the_position() -> None:
    definition = build_definition({"name": "x", "python": "a = 1\ndef f(:\n", "file": "x.py"}, "x")
    with pytest.raises(DefinitionError, match=r"x\.py:2:7: invalid syntax"):
        compile_program(definition)


# ---------------------------------------------------------------------- programs: a text or a file, by type
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("script: |\n  SELECT 1\n", "field 'script' names a file; write a text as\n  script:\n    text: |"),
        ("script: SELECT 1", "names a file, and there is no file 'SELECT 1'; write a text as"),
        ('script: "\\ud800"', "names a file, and there is no file"),
        (f"script: {'x' * 5_000}", "names a file, and there is no file"),
        ("script: {txt: SELECT 1}", "field 'script' is the name of a file, or text: {text: ...}"),
        ("script: {text: SELECT 1, file: a.sql}", "is the name of a file, or text"),
        ("script: {text: 1}", "is the name of a file, or text"),
        ("python: [pass]", "field 'python' is the name of a file, or text"),
        ("python: {text: ''}", "exactly one of"),
        ("python: job.py\nscript: ''", "job.py: cannot be read"),
        ("script: loop.sql", "loop.sql: cannot be read: Too many levels of symbolic links"),
    ],
)
def test_a_string_in_a_file_names_a_file_and_a_text_is_marked_as_such(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "loop.sql").symlink_to("loop.sql")
    with pytest.raises(DefinitionError) as caught:
        parse_definition(f"name: x\n{text}", "job.yaml", tmp_path)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_a_file_needs_no_particular_name(tmp_path: Path) -> None:
    (tmp_path / "totals of today").write_text("SELECT 1", encoding="utf-8")
    definition = parse_definition("name: x\nscript: totals of today", "job.yaml", tmp_path)
    assert (definition.script, definition.file) == ("SELECT 1", "totals of today")


def test_in_python_a_string_is_text_and_a_path_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1", encoding="utf-8")
    monkeypatch.chdir(tmp_path.parent)
    text = Definition(name="x", script="SELECT 2")
    assert (text.script, text.file, text.directory) == ("SELECT 2", "", str(tmp_path.parent))
    file = Definition(name="x", script=Path(tmp_path.name, "a.sql"))
    assert (file.script, file.file, file.directory) == ("SELECT 1", "a.sql", str(tmp_path))
    assert Definition(name="x", python=tmp_path / "a.sql", file="b", directory="/c").directory == "/c"
    assert load_definition(tmp_path / "a.sql").script == file.script


def test_the_constructor_raises_errors_of_this_package_alone(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"name": "x"},
        {"name": "x", "script": "flights.sql"},
        {"name": "x", "script": tmp_path / "none.sql"},
        {"name": "x", "script": tmp_path},
        {"name": "x", "script": Path("a\0b")},
        {"name": "x", "script": 5},
        {"name": "x", "script": "a\0b"},
        {"name": "x", "script": "\ud800"},
        {"name": "x", "script": "x" * MAX_DEFINITION_BYTES},
        {"name": "x", "script": "a", "retry": {"attempts": 0}},
        {"name": "x", "script": "a", "retry": 5},
        {"name": "x", "script": "a", "nope": 1},
        {"name": "x", "script": "a", "variables": {"a": object()}},
    ]
    for fields in wrong:
        with pytest.raises(DefinitionError):
            Definition(**fields)
    parts: list[Callable[..., object]] = [
        *(Retry, Timeout, Callback, CheckpointUse, Schedule, Spark, Executor, Tuning)
    ]
    for part in parts:
        with pytest.raises(DefinitionError, match=r"^[A-Z][A-Za-z]+: unknown field 'nope'"):
            part(nope=1)


def test_all_errors_of_a_definition_are_reported_at_once() -> None:
    wrong: dict[str, Any] = {"labels": {"a": None}}
    with pytest.raises(DefinitionError) as caught:
        Definition(name="a b", script="a", retry={"attempts": 0}, **wrong)
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == [
        " field 'name'",
        " field 'retry.attempts'",
        " field 'labels'",
    ]


def test_the_signature_for_type_checkers_names_each_field() -> None:
    module = ast.parse(Path(str(inspect.getsourcefile(Definition))).read_text("utf-8"))
    made = next(
        node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.args.kwonlyargs
    )
    assert [argument.arg for argument in made.args.kwonlyargs] == list(Definition.model_fields)


@pytest.mark.parametrize("text", ["SELECT * FROM db.sql", "x = job.py", "a.sqlx"])
def test_a_program_that_only_ends_like_a_file_is_a_text(text: str) -> None:
    assert Definition(name="x", script=text).script == text


@pytest.mark.parametrize("part", [Definition(**MINIMAL), Retry(), Spark()], ids=["whole", "retry", "spark"])
def test_a_definition_does_not_change_and_says_so(part: Any) -> None:
    with pytest.raises(
        DefinitionError, match=r"'name' cannot be changed; make a new \w+ with the other value"
    ):
        part.name = "other"


@pytest.mark.parametrize(
    "changes",
    [{"name": 5}, {"name": "../x"}, {"retry": "often"}, {"variables": {"a": object()}}, {"pool": "a/b"}],
    ids=["name", "path", "retry", "variables", "pool"],
)
def test_a_copy_with_values_that_no_definition_has_is_refused(changes: dict[str, Any]) -> None:
    altered = Definition(**MINIMAL).model_copy(update=changes)
    with pytest.raises(DefinitionError):
        checked(altered)


def test_a_definition_whose_mapping_was_changed_is_validated_again() -> None:
    definition = Definition(name="x", script="SELECT ${a}", variables={"a": "1"}, directory="/data")
    assert checked(definition) == definition
    definition.variables["a"] = 5  # type: ignore[assignment]  # as a program without types may do
    assert checked(definition).variables == {"a": "5"}
    definition.labels["b"] = object()  # type: ignore[assignment]  # likewise
    with pytest.raises(DefinitionError, match="labels"):
        checked(definition)


@pytest.mark.parametrize(
    "given",
    [{"arguments": "--day 5"}, {"arguments": 5}, {"variables": "ab"}, {"variables": [1]}, {"variables": 5}],
    ids=str,
)
def test_arguments_of_another_type_are_refused_when_a_file_is_loaded(
    given: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text("pass")
    (tmp_path / "job.yaml").write_text("name: x\npython: job.py\n")
    for name in ("job.py", "job.yaml"):
        with pytest.raises(DefinitionError, match=next(iter(given))):
            load_definition(tmp_path / name, **given)
