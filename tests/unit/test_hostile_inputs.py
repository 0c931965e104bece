"""Foreign numbers, settings and files: read up to a limit or refused with a message; never a traceback."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from pydantic import ValidationError
from typer.testing import CliRunner

from orchestrator.cli.options import Watch, parse_pools
from orchestrator.config.settings import Settings, load_settings
from orchestrator.driver_logs.facts import read_secrets
from orchestrator.driver_logs.stream import CutLog
from orchestrator.model.definition import build_definition
from orchestrator.model.errors import DefinitionError, SettingsError
from orchestrator.model.fields import checked_memory
from spark_runner.protocol.errors import BackendUnreachable
from spark_runner.protocol.plain_file import MAX_JSON_BYTES, parse_json, read_json, read_plain
from spark_runner.runners.http_json import ClusterReply
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.submission_state import tail
from tests import bounded

ARABIC, FULL_WIDTH = "\u0662\u0661\u0668\u0661", "\uff12\uff11\uff18\uff11"


# ---------------------------------------------------------------------- numbers
@pytest.mark.parametrize("port", [ARABIC, FULL_WIDTH, "2_181", "+2181", "0", "65536", "9" * 5_000, "\u00b2"])
def test_a_port_has_plain_digits(port: str) -> None:
    with pytest.raises(ValidationError, match="is not host:port"):
        Settings(zookeeper_hosts=f"zk:{port}")
    for master in (f"spark://host:{port}x", f"spark://host:{port}"):
        if port in {"0", "65536"} and not master.endswith("x"):
            continue  # of a form that masters have
        with pytest.raises(DefinitionError, match="master"):
            build_definition({"name": "x", "script": "a", "spark": {"master": master}}, "test")


@pytest.mark.parametrize("host", ["zk\x1b[2J:2181", "zk\u202e:2181", "z\x00k:2181", "zk\n:2181"])
def test_a_host_has_no_characters_that_cannot_be_seen(host: str) -> None:
    with pytest.raises(ValidationError, match="is not host:port"):
        Settings(zookeeper_hosts=host)


@pytest.mark.parametrize(
    "amount", ["1\u212a", "1\u0661g", "\uff11g", "1" * 400 + "g", "1e3g", "-1g", "0g", "g"]
)
def test_an_amount_of_memory_has_plain_digits_and_an_end(amount: str) -> None:
    with pytest.raises(ValueError, match="is not an amount of memory"):
        checked_memory(amount)


@pytest.mark.parametrize("weight", [ARABIC, "1" * 5_000, "-1", "1.0", "0"])
def test_a_weight_has_plain_digits(weight: str) -> None:
    with pytest.raises(SettingsError, match="write NAME or NAME=WEIGHT"):
        parse_pools([f"a={weight}"])


@pytest.mark.parametrize(
    "url", ["https://h/\x1b[2J", "https://h/\u202e", "https://h\u2028/", "${env:\u0661}"]
)
def test_the_address_of_a_callback_can_be_seen(url: str) -> None:
    with pytest.raises(DefinitionError, match="is not an http or https address"):
        build_definition({"name": "x", "script": "a", "callback": {"url": url}}, "test")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "1e400", "-1", "0"])
def test_options_refuse_an_invalid_number_of_seconds(seconds: str) -> None:
    app, seen = typer.Typer(), []

    @app.command()
    def look(watch: Watch = None) -> None:
        seen.append(watch)

    assert CliRunner().invoke(app, ["--watch", seconds]).exit_code == 2
    assert seen == []


# ---------------------------------------------------------------------- settings
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "9" * 5_000, "Exceeds the limit"),
        ("a = nan\nslots = inf", "slots"),
        ('root = "/a\\u0000"', "root"),
        ('root = "\\UFFFFFFFF"', ""),
        ("kill_grace = inf", "is not a duration"),
        ('kill_grace = "9999999d"', "is not a duration"),
        (" " * (1024 * 1024 + 1), "is longer than 1,048,576 bytes"),
    ],
    ids=["deep", "digits", "nan", "nul", "escape", "infinite", "days", "long"],
)
def test_settings_that_cannot_be_are_refused_in_words(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(path))
    found = bounded.outcome(load_settings)
    assert isinstance(found, SettingsError)
    assert words in str(found)
    assert len(str(found)) < 5_000


def test_a_table_in_the_environment_that_is_too_deep_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_LOGS", "[" * 100_000)
    found = bounded.outcome(load_settings)
    assert isinstance(found, SettingsError)
    assert len(str(found)) < 5_000


# ---------------------------------------------------------------------- files of drivers, answers of backends
def _with_a_hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def test_files_in_a_run_directory_are_read_to_a_limit_and_never_waited_for(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run" / "incarnation")
    directory.path.mkdir(parents=True)
    outcome, words = directory.path / "outcome.json", directory.path / "shim.log"
    makes: tuple[Callable[[Path], object], ...] = (
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        Path.mkdir,
        lambda path: path.write_bytes(b"[" * 100_000),
        lambda path: path.write_bytes(b"9" * 100_000),
        _with_a_hole,
    )
    for make in makes:
        for path in (outcome, words):
            make(path)
        seen = bounded.outcome(
            lambda: (directory.outcome(), directory.usage(), len(directory.trouble()), len(tail(words)))
        )
        assert seen[:2] == (None, None)
        assert seen[2] <= 100_000
        assert seen[3] <= 64 * 1024
        assert bounded.outcome(lambda: read_secrets(directory.path)) == []
        for path in (outcome, words):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_a_log_that_is_no_file_any_more_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stdout.log")
    part = bounded.outcome(lambda: CutLog(tmp_path / "stdout.log").read(0, 100, ended=True))
    assert part is None or part.data == b""


def test_json_of_others_is_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_bytes(b" " * (MAX_JSON_BYTES + 1))
    with pytest.raises(ValueError, match="is longer than"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps({"a": 1}))
    assert read_json(tmp_path / "a.json") == {"a": 1} == parse_json('{"a": 1}')
    with pytest.raises(ValueError, match="is longer than 3 bytes"):
        read_plain(tmp_path / "a.json", 3)
    with pytest.raises(BackendUnreachable, match="something that is no JSON"):
        ClusterReply("http://master", 200, b"[" * 100_000).json()


def test_of_a_user_only_a_file_of_its_own_is_read_and_no_link_is_followed(tmp_path: Path) -> None:
    own, link, hard = tmp_path / "own", tmp_path / "link", tmp_path / "hard"
    own.write_text("kept")
    link.symlink_to(own)
    hard.hardlink_to(own)
    us = os.geteuid()
    assert read_plain(own, 10, of=us) == b"kept"
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        read_plain(link, 10, of=us)
    with pytest.raises(ValueError, match=f"belongs to user {us}, not to user {us + 1}"):
        read_plain(hard, 10, of=us + 1)
