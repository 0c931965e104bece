"""Checkpoints in folders of this host: their record, list and removal, and what a submission may ask."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.options import parse_checkpoint
from orchestrator.config.settings import Settings
from orchestrator.model.checkpoint import bound_to_checkpoint
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.definition_parts import CheckpointUse
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import compile_program
from orchestrator.schedules.runs import compile_registration
from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.folders import LocalFolders, local_path
from spark_runner.sql.checkpoints.listing import checkpoints_in
from spark_runner.sql.checkpoints.record import RECORD, DamagedRecord, Record
from spark_runner.sql.checkpoints.removal import put_away, remove, sweep
from tests.another_user import as_another_user

STREAM = """SET job.mode = 'available-now';
CREATE TABLE orders (id BIGINT) USING json OPTIONS (path '/in');
CREATE TABLE kinds (id BIGINT) USING json OPTIONS (path '/kinds', streaming 'false');
CREATE TABLE sold USING json OPTIONS (path '/out');
INSERT INTO sold SELECT id FROM orders JOIN kinds USING (id);
"""
TIME = "2026-11-01T00:00:00Z"


def definition(script: str = STREAM, **fields: Any) -> Definition:
    return build_definition({"name": "sales", "script": script, "file": "s.sql", **fields}, "test")


def compiled(script: str = STREAM, **fields: Any) -> Definition:
    given = definition(script, **fields)
    return bound_to_checkpoint(given, compile_program(given))


def checkpoint(folder: Path, target: str = "sold", record: str | None = None, batches: int = 3) -> Path:
    """A checkpoint as Spark leaves it, with the files of the last batches."""
    made = folder / "sales" / target
    for part in ("offsets", "commits"):
        (made / part).mkdir(parents=True)
        for number in range(max(0, batches - 2), batches):
            (made / part / str(number)).write_text("v1")
            (made / part / f".{number}.crc").touch()
    (made / RECORD).write_text(Record("f" * 64, "s").text() if record is None else record)
    return made


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


# ---------------------------------------------------------------------- submissions
def test_a_job_that_reads_streams_runs_once_at_a_time() -> None:
    bound = compiled()
    assert (bound.concurrency, bound.checkpoint) == (1, CheckpointUse())
    batch = "CREATE TABLE o USING json OPTIONS (path '/o'); INSERT INTO o SELECT 1 AS a"
    assert compiled(batch, concurrency=3).concurrency == 3
    with pytest.raises(DefinitionError, match="one checkpoint serves one running job"):
        compiled(concurrency=2)


def test_the_options_become_a_field_of_the_definition() -> None:
    def parsed(**given: Any) -> dict[str, Any] | None:
        return parse_checkpoint(**{"resume": False, "fresh": False, "positions": None, **given})

    assert parsed() is None
    assert parsed(resume=True) == {"start": "resume"}
    assert parsed(fresh=True) == {"start": "fresh"}
    assert parsed(positions=["a=x=y", "z"]) == {"start": "fresh", "positions": {"a": "x=y", "*": "z"}}
    with pytest.raises(DefinitionError, match="give only one of --resume and --from"):
        parsed(resume=True, positions=["z"])
    for wrong in (["=z"], ["a="], ["a=1", "a=2"], ["1", "2"]):
        with pytest.raises(DefinitionError, match="--from"):
            parsed(positions=wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"checkpoint": {"start": "anew"}}, "did you mean 'fresh'|not 'anew'"),
        ({"checkpoint": {"positions": {"*": TIME}}}, "'positions' need 'start: fresh'"),
        ({"checkpoint": {"start": "fresh", "positions": {"order": TIME}}}, "did you mean 'orders'"),
        ({"checkpoint": {"start": "fresh", "positions": {"kinds": TIME}}}, "does not read as a stream"),
        ({"checkpoint": {"start": "fresh", "positions": {"sold": TIME}}}, "does not read as a stream"),
        ({"checkpoint": {"start": "fresh", "positions": {"*": "yesterday"}}}, "'yesterday': it is no time"),
        ({"checkpoint": {"start": "fresh", "positions": {"*": "2026-11-01T00:00:00"}}}, "it has no zone"),
    ],
)
def test_what_a_submission_cannot_ask_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        compiled(**fields)


def test_positions_ignore_the_case_of_tables() -> None:
    compiled(checkpoint={"start": "fresh", "positions": {"ORDERS": TIME, "*": "2026-11-01T05:45+05:45"}})


def test_a_position_holds_for_uses_with_options_too() -> None:
    script = STREAM.replace("FROM orders", "FROM orders /*+ OPTIONS('max_files_per_trigger' = '5') */")
    assert script != STREAM
    compiled(script, checkpoint={"start": "fresh", "positions": {"orders": TIME}})
    with pytest.raises(DefinitionError, match="did you mean 'orders'"):
        compiled(script, checkpoint={"start": "fresh", "positions": {"order": TIME}})


def test_what_has_no_checkpoint_takes_no_such_option() -> None:
    use = {"start": "resume"}
    with pytest.raises(DefinitionError, match="'sales' is a script in mode 'batch', which has no checkpoint"):
        compiled("SELECT 1", checkpoint=use)
    program = build_definition({"name": "p", "python": "pass", "checkpoint": use}, "test")
    with pytest.raises(DefinitionError, match="'p' is a program, which has no checkpoint"):
        compile_program(program)
    periodic = definition("SELECT 1", checkpoint=use, schedule={"every": "1h"})
    with pytest.raises(DefinitionError, match="has no checkpoint"):
        compile_registration(periodic)


def test_a_definition_with_a_checkpoint_survives_its_form_in_zookeeper() -> None:
    bound = compiled()
    document = bound.model_dump(mode="json", exclude_defaults=True)
    assert document["checkpoint"] == {}
    assert Definition.model_validate(document) == bound


def test_the_setting_is_a_text_or_a_table_by_pool() -> None:
    assert Settings(checkpoints="hdfs://n/c").checkpoints == {"*": "hdfs://n/c"}
    assert Settings(checkpoints="").checkpoints == {}
    assert Settings(checkpoints={"etl": "s3a://b"}).checkpoints == {"etl": "s3a://b"}


# ---------------------------------------------------------------------- records
def test_a_record_survives_its_file_and_keeps_its_positions() -> None:
    record = Record("f", "s", "key", {"orders": "1", "*": "2"})
    assert Record.of(record.text(), "file:/c") == record
    assert (record.position("Orders"), record.position("other")) == ("1", "2")
    assert Record.of('{"fingerprint": "f", "stream": "s"}', "file:/c") == Record("f", "s")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '"f"',
        '{"stream": "s"}',
        '{"fingerprint": 1, "stream": "s"}',
        '{"fingerprint": "f", "stream": "s", "positions": {"a": 1}}',
    ],
)
def test_a_damaged_record_is_an_error(text: str) -> None:
    with pytest.raises(DamagedRecord, match=r"'file:/c/orchestrator.json' is damaged: .*--fresh"):
        Record.of(text, "file:/c")


# ---------------------------------------------------------------------- folders of this host
def test_a_file_url_has_a_path_as_hadoop_reads_it() -> None:
    assert local_path("file:/a/b%2Fc,2") == Path("/a/b%2Fc,2")
    assert local_path("file:///a") == local_path("FILE:/a") == local_path("file://host/a") == Path("/a")
    assert local_path("hdfs://n/a") is None
    with pytest.raises(ConnectorError, match="no file: URL with an absolute path"):
        LocalFolders().names("file:a")


def test_the_list_shows_finished_batches_and_folders_that_are_none(tmp_path: Path) -> None:
    place = f"file:{tmp_path}"
    checkpoint(tmp_path, batches=120)
    checkpoint(tmp_path, "db.sold%2F%22x%22,2", batches=0)
    checkpoint(tmp_path, "damaged", record="{")
    (tmp_path / "sales" / "foreign").mkdir()
    (tmp_path / "sales" / ".sold-removed-1").mkdir()
    (tmp_path / "other" / "t").mkdir(parents=True)
    found = {each.target: each for each in checkpoints_in(LocalFolders(), place, "sales")}
    assert found.keys() == {"sold", 'db.sold/"x",2', "damaged", "foreign"}
    assert (found["sold"].batches, found["sold"].fingerprint) == (120, "f" * 64)
    assert found["sold"].changed == pytest.approx((tmp_path / "sales/sold/commits").stat().st_mtime, abs=60)
    assert found['db.sold/"x",2'].batches == 0
    assert "is damaged" in found["damaged"].error
    assert "has no orchestrator.json" in found["foreign"].error
    assert {each.name for each in checkpoints_in(LocalFolders(), place)} == {"sales", "other"}
    assert list(checkpoints_in(LocalFolders(), f"{place}/nowhere")) == []


def test_a_removal_takes_one_checkpoint_alone(tmp_path: Path) -> None:
    made, beside = checkpoint(tmp_path), checkpoint(tmp_path, "sold,2")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (made / "link").symlink_to(outside)
    remove(LocalFolders(), f"file:{made}")
    assert not made.exists()
    assert (outside / "kept").exists(), "links are not followed"
    assert [path.name for path in (tmp_path / "sales").iterdir()] == [beside.name]


def test_a_damaged_checkpoint_can_be_removed(tmp_path: Path) -> None:
    made = checkpoint(tmp_path)
    (made / RECORD).write_bytes(b"\xff\x00")
    remove(LocalFolders(), f"file:{made}")
    assert not made.exists()


def test_what_is_no_checkpoint_is_not_removed(tmp_path: Path) -> None:
    made = checkpoint(tmp_path)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "data").touch()
    (tmp_path / "link").symlink_to(made)
    before = tree(tmp_path)
    for name, reason in (
        ("foreign", "has no orchestrator.json, so it is no checkpoint"),
        ("link", "is a symbolic link"),
    ):
        with pytest.raises(ConnectorError, match=f"{reason}.*; nothing was removed"):
            remove(LocalFolders(), f"file:{tmp_path}/{name}")
    assert tree(tmp_path) == before


def test_a_checkpoint_that_a_driver_uses_is_not_removed(tmp_path: Path) -> None:
    made = checkpoint(tmp_path)
    with LocalFolders().lock(f"file:{made}") as is_ours:
        assert is_ours
        with pytest.raises(ConnectorError, match="a running driver on this host uses"):
            remove(LocalFolders(), f"file:{made}")
    assert made.exists()


def test_a_folder_that_was_put_away_is_not_locked(tmp_path: Path) -> None:
    made = checkpoint(tmp_path)
    real = os.open

    def late(path: Any, *rest: Any, **named: Any) -> int:
        file = real(path, *rest, **named)
        if path == made and made.exists():  # another process is faster
            made.rename(tmp_path / "aside")
            made.mkdir()
        return file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", late)
        with LocalFolders().lock(f"file:{made}") as is_ours:
            assert not is_ours


def test_without_permission_nothing_is_removed() -> None:
    with tempfile.TemporaryDirectory() as base:  # the folders of pytest are closed to other users
        folder = Path(base)
        folder.chmod(0o755)
        made = checkpoint(folder)

        def act() -> str:
            try:
                remove(LocalFolders(), f"file:{made}")
            except ConnectorError as error:
                return str(error)
            return ""

        assert "Permission denied" in as_another_user(act)
        assert (made / "commits" / "2").exists()


def test_an_error_of_the_file_system_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConnectorError, match=r"file/t': Not a directory"):
        LocalFolders().make(f"file:{tmp_path}/file/t")
    with pytest.raises(ConnectorError, match="null"):
        LocalFolders().read(f"file:{tmp_path}/\0")


def test_what_a_killed_removal_leaves_is_swept_and_nothing_else(tmp_path: Path) -> None:
    made = checkpoint(tmp_path)
    other = checkpoint(tmp_path, "other")
    aside = local_path(put_away(LocalFolders(), f"file:{made}"))
    assert aside is not None
    assert aside.is_dir()
    of_other = local_path(put_away(LocalFolders(), f"file:{other}"))
    (tmp_path / "sales" / ".sold-removed-mine").mkdir()
    sweep(LocalFolders(), f"file:{made}")
    left = {path.name for path in (tmp_path / "sales").iterdir()}
    assert of_other is not None
    assert left == {of_other.name, ".sold-removed-mine"}


def test_a_record_is_replaced_as_a_whole(tmp_path: Path) -> None:
    url = f"file:{checkpoint(tmp_path)}/{RECORD}"
    old = LocalFolders().read(url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(ConnectorError, match="No space left"):
            LocalFolders().replace(url, Record("g", "s").text())
    assert LocalFolders().read(url) == old
    LocalFolders().replace(url, Record("g", "s").text())
    assert json.loads(LocalFolders().read(url) or "")["fingerprint"] == "g"
