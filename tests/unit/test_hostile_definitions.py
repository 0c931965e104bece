"""Hostile definitions: each is read or refused with a message, within little time and memory."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.submission import load_definition
from orchestrator.model.definition import Definition
from orchestrator.model.definition_files import parse_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.fields import MAX_DAYS, parse_seconds
from orchestrator.model.program_files import read_program
from orchestrator.model.reading import MAX_INPUT_BYTES
from tests import bounded

HEAD = "name: x\nscript: {text: SELECT 1}\n"
LEVELS = range(1, 30)
LAUGHS = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in LEVELS
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], k{n}: v}}\n" for n in LEVELS
)
LONG = "labels: {" + ", ".join([f"a: &a {'x' * 100_000}", *(f"b{n}: *a" for n in range(5_000))]) + "}"

REFUSED = {
    "aliases of aliases": (LAUGHS, "with those that aliases repeat; the limit is"),
    "merges of merges": (MERGES, "with those that aliases repeat; the limit is"),
    "a long text repeated": (HEAD + LONG, "with those that aliases repeat; the limit is"),
    "an alias in itself": ("labels: &a {b: *a}", "the alias 'a' is part of the value that it repeats"),
    "flow lists in lists": ("[" * 100_000, "nested"),
    "flow mappings in mappings": ("a: " + "{a: " * 50_000, "nested deeper than the limit of 50"),
    "block lists in lists": ("- " * 100_000, "nested deeper than the limit of 50"),
    "lists in lists in JSON": ('{"labels": ' + "[" * 100_000, "nested"),
    "values without end": (HEAD + "labels: {" + "a: b, " * 100_000, "the limit is 20,000"),
    "a list as the name of a field": ("? [a]\n: b", "the name of a field must be text"),
    "a mapping as the name of a field": ("{{a: b}: c}", "the name of a field must be text"),
    "a list as a name in a merge": (
        HEAD + "labels: {<<: {? [a] : b}}",
        "the name of a field must be text",
    ),
    "a tag of Python": ("!!python/object/apply:os.system [ls]", "the tag 'tag:yaml.org,2002:python"),
    "a tag of one's own": ("name: !mine x", "the tag '!mine' does not fit"),
    "a tag of bytes": ("name: !!binary x", "the tag 'tag:yaml.org,2002:binary' does not fit"),
    "a tag of a time": ("name: !!timestamp x", "does not fit"),
    "a truth that is none": ("name: !!bool maybe", "the tag 'tag:yaml.org,2002:bool' does not fit"),
    "a number that is none": ("name: !!int ''", "the tag 'tag:yaml.org,2002:int' does not fit"),
    "digits without end in YAML": ("name: " + "9" * 100_000, "Exceeds the limit"),
    "digits without end in JSON": ('{"name": ' + "9" * 100_000 + "}", "job.yaml: Exceeds the limit"),
    "NaN in JSON": (
        '{"name": "x", "script": {"text": "a"}, "timeout": {"run": NaN}}',
        "NaN is not a JSON number",
    ),
    "more than a number in JSON": (
        '{"name": "x", "script": {"text": "a"}, "timeout": {"run": 1e400}}',
        "inf s is not a duration",
    ),
    "a duplicate name at the end": (
        '{"labels": {' + ", ".join(f'"k{n}": 1' for n in range(40_000)) + ', "z": 1, "z": 2}}',
        "field 'z' is given twice",
    ),
    "unknown fields without end": (
        '{"name": "x", ' + ", ".join(f'"k{n}": 1' for n in range(40_000)) + "}",
        "more errors",
    ),
    "an unknown field without end": (
        f'{{"name": "x", "script": {{"text": "a"}}, "{"k" * 300_000}": 1}}',
        "unknown field",
    ),
    "a timezone without end": (
        'name: x\nscript: {text: a}\nschedule: {cron: "* * * * *", timezone: ' + "A" * 300_000 + "}",
        "is not a time zone",
    ),
    "a choice without end": (
        f'{{"name": "x", "script": {{"text": "a"}}, "timeout": {{"on_run": "{"fail" * 70_000}"}}}}',
        "on_run",
    ),
    "a duration without end": (
        f'{{"name": "x", "script": {{"text": "a"}}, "timeout": {{"run": "{"1" * 300_000}s"}}}}',
        "is not a duration",
    ),
    "half of a surrogate pair": ('{"name": "x", "script": {"text": "\\ud800"}}', "not valid Unicode"),
    "half of a surrogate pair in YAML": ('name: x\nscript: {text: "\\ud800"}', "Unicode"),
    "a character beyond the last": ('name: x\nscript: "\\UFFFFFFFF"', "job.yaml"),
    "NUL in a variable": (
        '{"name": "x", "script": {"text": "a"}, "variables": {"v": "a\\u0000b"}}',
        "field 'variables.v'",
    ),
    "NUL in a name": (
        '{"name": "x", "script": {"text": "a"}, "labels": {"l\\u0000": "b"}}',
        "contains the character NUL",
    ),
    "NUL in an argument": (
        '{"name": "x", "python": {"text": "a"}, "arguments": ["\\u0000"]}',
        "field 'arguments.0'",
    ),
    "NUL in a path": ('{"name": "x", "script": "a\\u0000b.sql"}', "NUL"),
    "a folder of an unknown user": (
        '{"name": "x", "script": {"text": "a"}, "directory": "~nobody-here/a"}',
        "~nobody-here",
    ),
    "NUL in a folder": ('{"name": "x", "script": {"text": "a"}, "directory": "/a\\u0000b"}', "NUL"),
}


@pytest.mark.parametrize("weapon", REFUSED)
def test_a_definition_that_asks_for_too_much_is_refused_in_words(weapon: str, tmp_path: Path) -> None:
    text, words = REFUSED[weapon]
    found = bounded.outcome(lambda: parse_definition(text, "job.yaml", tmp_path))
    assert isinstance(found, DefinitionError)
    assert words in str(found)
    assert len(str(found)) < 20_000


def test_a_long_definition_is_read_in_little_time(tmp_path: Path) -> None:
    text = (
        HEAD.replace("{text: SELECT 1}", "\n  text: |\n" + "    SELECT '[{&*!' -- x\n" * 10_000)
        + "labels: {a: &a b, c: *a}"
    )
    found = bounded.outcome(lambda: parse_definition(text, "job.yaml", tmp_path))
    assert isinstance(found, Definition)
    assert found.labels == {"a": "b", "c": "b"}


@pytest.mark.parametrize(
    "text",
    [
        "inf",
        "nan",
        "1e400s",
        "-1s",
        "9999999d",
        f"{MAX_DAYS + 1}d",
        "1" * 400 + "s",
        "\u0663s",
        "\uff11s",
        "1_0s",
        "",
    ],
)
def test_an_invalid_duration_is_refused_with_a_message(text: str) -> None:
    with pytest.raises(ValueError, match="duration") as caught:
        parse_seconds(text)
    assert len(str(caught.value)) < 500


# ---------------------------------------------------------------------- files
@pytest.mark.parametrize("name", ["job.yaml", "job.json", "job.sql", "job.py"])
def test_a_path_that_is_no_file_is_refused_and_never_waited_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    makes: tuple[tuple[Callable[[], None], str], ...] = (
        (lambda: os.mkfifo(path), "is a pipe, not a file"),
        (lambda: path.symlink_to("/dev/zero"), "is a device or socket, not a file"),
        (lambda: path.symlink_to("/dev/tty"), ""),
        (path.mkdir, "Is a directory"),
    )
    for make, words in makes:
        make()
        found = bounded.outcome(lambda: load_definition(str(path), {}))
        assert isinstance(found, DefinitionError)
        assert str(found).startswith(f"{path}: ")
        assert words in str(found)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_a_script_that_a_definition_names_is_read_as_carefully(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job.sql")
    with pytest.raises(DefinitionError, match="is a pipe, not a file"):
        parse_definition("name: x\nscript: job.sql", "job.yaml", tmp_path)


def test_a_file_is_read_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "job.sql"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: it takes no disk space
    found = bounded.outcome(lambda: read_program(path))
    assert isinstance(found, DefinitionError)
    assert f"is longer than {MAX_INPUT_BYTES:,} bytes" in str(found)


def test_standard_input_is_read_to_a_limit_and_has_to_be_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/zero").open() as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        found = bounded.outcome(lambda: load_definition("-", {}))
    assert isinstance(found, DefinitionError)
    assert str(found) == f"standard input: is longer than {MAX_INPUT_BYTES:,} bytes, which is the limit"
