import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.archive import jsonl
from orchestrator.archive.base import ArchiveError
from orchestrator.archive.jsonl import JsonlArchive
from orchestrator.logs.files import folder_lock
from tests.waiting import wait_until

NOVEMBER, DECEMBER = datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
FILE = "jobs-2026-11.jsonl"


def archive(directory: Path, now: datetime = NOVEMBER) -> JsonlArchive:
    return JsonlArchive(directory, now=lambda: now)


def document(run_key: str, **fields: object) -> dict[str, Any]:
    return {"id": f"job-{run_key}", "run_key": run_key, **fields}


def run_keys(directory: Path) -> list[str]:
    """The run keys of all lines; each line has to be a whole document."""
    paths = sorted(directory.glob("*.jsonl"))
    return [json.loads(line)["run_key"] for path in paths for line in path.read_bytes().split(b"\n")[:-1]]


# ---------------------------------------------------------------------- format
def test_each_document_is_one_line_in_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    made = archive(tmp_path / "archive")
    made.write(document("a", name="Müller\n\u2028"), since=made.position())
    made.write(document("b"), since=made.position())
    path = tmp_path / "archive" / FILE
    first, second = path.read_text("ascii").splitlines()
    assert json.loads(first) == document("a", name="Müller\n\u2028")
    assert json.loads(second) == document("b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Name and size of each synced file."""
    files, fsync = list[tuple[str, int]](), os.fsync

    def note(file: int) -> None:
        fsync(file)
        files.append((Path(f"/proc/self/fd/{file}").readlink().name, os.fstat(file).st_size))

    monkeypatch.setattr(os, "fsync", note)
    return files


def test_a_document_is_on_the_disk_when_it_counts_as_written(
    tmp_path: Path, synced: list[tuple[str, int]]
) -> None:
    made = archive(tmp_path)
    made.write(document("a"), since=made.position())
    assert synced == [(FILE, (tmp_path / FILE).stat().st_size), (tmp_path.name, synced[-1][1])]
    made.write(document("b"), since=made.position())
    assert synced[-1] == (FILE, (tmp_path / FILE).stat().st_size)


@pytest.mark.parametrize("now", [NOVEMBER, DECEMBER])
def test_a_document_that_another_has_written_is_on_the_disk_too(
    tmp_path: Path, synced: list[tuple[str, int]], now: datetime
) -> None:
    archive(tmp_path).write(document("a"))
    written = synced.copy()
    archive(tmp_path, now).write(document("a"))  # its writer may have ended before the sync
    assert written[0] in synced[len(written) :]


# ---------------------------------------------------------------------- once
def test_a_document_behind_the_position_is_not_written_again(tmp_path: Path) -> None:
    before, after = archive(tmp_path), archive(tmp_path)
    before.write(document("earlier"), since=before.position())
    since = before.position()
    before.write(document("a"), since=since)
    for number in range(3):
        after.write(document(f"other-{number}"), since=after.position())
    after.write(document("a"), since=since)
    before.write(document("a"), since=since)
    assert run_keys(tmp_path) == ["earlier", "a", "other-0", "other-1", "other-2"]


def test_a_document_of_the_month_before_is_not_written_again(tmp_path: Path) -> None:
    since = archive(tmp_path).position()
    archive(tmp_path).write(document("a"), since=since)
    archive(tmp_path, DECEMBER).write(document("b"), since=archive(tmp_path, DECEMBER).position())
    archive(tmp_path, DECEMBER).write(document("a"), since=since)
    assert run_keys(tmp_path) == ["a", "b"]


def test_a_document_from_before_the_clock_was_set_back_is_not_written_again(tmp_path: Path) -> None:
    since = archive(tmp_path, DECEMBER).position()
    archive(tmp_path).write(document("a"), since=since)
    archive(tmp_path).write(document("a"), since=since)
    assert run_keys(tmp_path) == ["a"]


@pytest.mark.parametrize(
    "since", ["", "jobs-2026-11.jsonl:999999", "../../etc/passwd:0", "jobs:1", f"{FILE}:3"]
)
def test_where_the_position_says_nothing_all_is_looked_through(tmp_path: Path, since: str) -> None:
    made = archive(tmp_path)
    made.write(document("a"), since=made.position())
    made.write(document("b"), since=made.position())
    made.write(document("a"), since=since)
    made.write(document("c"), since=since)
    assert run_keys(tmp_path) == ["a", "b", "c"]


def test_a_file_that_was_moved_away_delays_nothing(tmp_path: Path) -> None:
    made = archive(tmp_path)
    made.write(document("a"), since=made.position())
    since = made.position()
    (tmp_path / FILE).rename(tmp_path / "elsewhere")
    made.write(document("b"), since=since)
    assert run_keys(tmp_path) == ["b"]


@given(keys=st.lists(st.text(max_size=6), min_size=2, max_size=8))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_run_key_is_taken_for_another(tmp_path_factory: pytest.TempPathFactory, keys: list[str]) -> None:
    directory = tmp_path_factory.mktemp("archive")
    made = archive(directory)
    for key in [*keys, *keys]:
        made.write(document(key))
    assert run_keys(directory) == list(dict.fromkeys(keys))


def test_looking_for_a_document_does_not_read_what_was_there_before(tmp_path: Path) -> None:
    made = archive(tmp_path)
    made.write(document("a"), since=made.position())
    with (tmp_path / FILE).open("r+b") as file:
        file.truncate(1 << 30)  # sparse: it takes no disk space
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    since = made.position()
    for _ in range(3):
        archive(tmp_path).write(document("b"), since=since)
    before = _bytes_read()
    archive(tmp_path).write(document("b"), since=since)
    assert _bytes_read() - before < 1 << 20


def _bytes_read() -> int:
    text = Path("/proc/thread-self/io").read_text("ascii")
    found = re.search(r"rchar: (\d+)", text)
    assert found
    return int(found[1])


# ---------------------------------------------------------------------- after a crash
@pytest.mark.parametrize(
    "left", [b"{", b'{"run_key": "b", "x"', b'{"run_key": "b"}', b"\0" * 5000, b'{"run_key": "b\0\0']
)
@pytest.mark.parametrize("lines_before", [0, 1])
def test_a_torn_last_line_is_cut_and_written_again(tmp_path: Path, left: bytes, lines_before: int) -> None:
    made = archive(tmp_path)
    before = [f"a-{number}" for number in range(lines_before)]
    for key in before:
        made.write(document(key), since=made.position())
    since = made.position()
    with (tmp_path / FILE).open("ab") as file:
        file.write(left)
    assert made.position() == since
    with (tmp_path / FILE).open("ab") as file:
        file.write(left)
    made.write(document("b"), since=since)
    assert run_keys(tmp_path) == [*before, "b"]


def test_a_torn_line_in_the_month_before_is_not_the_document(tmp_path: Path) -> None:
    made = archive(tmp_path)
    since = made.position()
    (tmp_path / FILE).write_bytes(b'{"run_key": "a", "id":')
    archive(tmp_path, DECEMBER).write(document("a"), since=since)
    assert json.loads((tmp_path / "jobs-2026-12.jsonl").read_bytes()) == document("a")


@pytest.mark.parametrize(
    "content",
    [
        b"my notes\n",
        b"my notes",
        b'{"run": 1}\n',
        b'{"run_key": "a"}\nmy notes',
        b"id,name\n1,x\n",
        b"\x1f\x8b\x08",
    ],
)
def test_a_file_of_another_program_is_refused_and_left_unchanged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    made = archive(tmp_path)
    with pytest.raises(ArchiveError, match=r"jobs-2026-11.jsonl contains lines of another program; move it"):
        made.position()
    with pytest.raises(ArchiveError, match="move it, or set"):
        made.write(document("a"))
    assert (tmp_path / FILE).read_bytes() == content


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(ArchiveError, match=r"jobs-2026-11.jsonl cannot be used: Is a directory"):
        archive(tmp_path).write(document("a"))
    (tmp_path / "file").touch()
    with pytest.raises(ArchiveError, match="cannot be used"):
        archive(tmp_path / "file").owner()


# ---------------------------------------------------------------------- a full disk
FULL_DISK = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from orchestrator.archive.base import ArchiveError
from orchestrator.archive.jsonl import JsonlArchive

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
made = JsonlArchive(Path(sys.argv[1]), now=lambda: datetime(2026, 11, 21, tzinfo=UTC))
try:
    made.write({"run_key": "b", "text": "x" * 2000}, since=made.position())
except ArchiveError as error:
    sys.exit(str(error))
"""


def test_a_disk_that_takes_no_more_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    made = archive(tmp_path)
    made.owner()
    made.write(document("a"), since=made.position())
    content = (tmp_path / FILE).read_bytes()
    for spare in (0, 10, 500):
        limit = len(content) + spare
        ended = subprocess.run(
            [sys.executable, "-c", FULL_DISK, str(tmp_path), str(limit)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "cannot be used: File too large" in ended.stderr
        assert (tmp_path / FILE).read_bytes() == content
    made.write(document("b"), since=made.position())
    assert run_keys(tmp_path) == ["a", "b"]


def test_documents_that_the_disk_did_not_confirm_do_not_count_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = archive(tmp_path)
    made.write(document("a"), since=made.position())
    since = made.position()

    def fail(_file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(ArchiveError, match="Input/output error"):
            made.write(document("b"), since=since)
    assert run_keys(tmp_path) == ["a"]
    made.write(document("b"), since=since)
    assert run_keys(tmp_path) == ["a", "b"]


# ---------------------------------------------------------------------- many at once
WRITER = """
import sys
from pathlib import Path
from orchestrator.archive.jsonl import JsonlArchive

made = JsonlArchive(Path(sys.argv[1]))
since = made.position()
print(flush=True)
for number, _ in enumerate(sys.stdin):
    made.write({"run_key": f"key-{number}", "text": "x" * 5000}, since=since)
    made.write({"run_key": f"{sys.argv[2]}-{number}"}, since=made.position())
    print(flush=True)
"""


def test_processes_that_write_at_once_write_whole_lines_and_each_document_once(tmp_path: Path) -> None:
    rounds, names = 200, ("own-0", "own-1", "own-2")
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(tmp_path), name],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                )
            )
            for name in names
        ]  # fmt: skip
        for _ in range(rounds):  # all begin with a document at the same moment
            for writer in writers:
                assert writer.stdout is not None
                assert writer.stdout.readline() == "\n"
            for writer in writers:
                assert writer.stdin is not None
                writer.stdin.write("\n")
        for writer in writers:
            writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    expected = [f"{name}-{number}" for name in ("key", *names) for number in range(rounds)]
    assert sorted(run_keys(tmp_path)) == sorted(expected)


def test_documents_that_come_together_share_one_fsync(tmp_path: Path, synced: list[tuple[str, int]]) -> None:
    made = archive(tmp_path)
    made.write(document("first"), since=made.position())
    since = made.position()
    synced.clear()
    threads = [
        threading.Thread(target=made.write, args=(document(f"key-{number}"),), kwargs={"since": since})
        for number in range(20)
    ]
    with folder_lock(tmp_path):
        for thread in threads:
            thread.start()
        waiting: Callable[[], bool] = lambda: len(made._waiting) == 19  # noqa: E731, SLF001 - no other way to see it
        wait_until(waiting, 10, "all but one wait")
    for thread in threads:
        thread.join(20)
    assert len(synced) == 2
    assert sorted(run_keys(tmp_path)) == sorted(["first", *(f"key-{number}" for number in range(20))])


def test_a_failure_reaches_all_that_were_to_be_written_with_it(tmp_path: Path) -> None:
    made = archive(tmp_path)
    since, errors = made.position(), list[str]()

    def write(number: int) -> None:
        try:
            made.write(document(f"key-{number}"), since=since)
        except ArchiveError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(5)]
    with folder_lock(tmp_path):
        for thread in threads:
            thread.start()
        waiting: Callable[[], bool] = lambda: len(made._waiting) == 4  # noqa: E731, SLF001 - no other way to see it
        wait_until(waiting, 10, "all but one wait")
        (tmp_path / FILE).write_bytes(b"my notes\n")
    for thread in threads:
        thread.join(20)
    assert len(errors) == 5


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.readline()
"""


def test_a_process_that_is_stopped_with_the_lock_in_hand_does_not_stop_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "_WAIT_SECONDS", 0.1)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(ArchiveError, match=r"held by another process for 0\.1 s"):
            archive(tmp_path).position()
    finally:
        holder.kill()
        holder.communicate()
    archive(tmp_path).position()


# ---------------------------------------------------------------------- the name
def test_an_archive_keeps_its_name_and_no_other_has_it(tmp_path: Path) -> None:
    names = {archive(tmp_path / "one").owner() for _ in range(3)}
    assert len(names | {archive(tmp_path / "two").owner()}) == 2


def test_a_name_that_was_damaged_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "name").write_text("not a name\n", "ascii")
    with pytest.raises(ArchiveError, match="does not hold the name of an archive; restore it"):
        archive(tmp_path).owner()
