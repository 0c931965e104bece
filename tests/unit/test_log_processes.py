"""Several processes at one spool: forks, takeover of abandoned folders, limits of the system."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.logs.errors import SpoolUnusable
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.target import BatchResult, ShipperOptions
from orchestrator.logs.spool.folder import SpoolFolder, folders_in, orphans, owner_of
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.writer import Spool
from tests.log_support import KIB, QUICK, SMALL, Shelf, append, drain, opened, read_numbers, shipping
from tests.waiting import wait_until

# The test needs a fork of a process with threads.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def in_child(act: Callable[[], object]) -> int:
    """Fork, act in the child, and return its exit code: 0 unless it raised."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            signal.alarm(20)  # a lock that a thread of the parent held would block forever
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_writes_to_a_folder_of_its_own_and_its_records_are_adopted(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root) as spool, shipping(root, shelf, spool):
        append(spool, range(10))
        assert in_child(lambda: append(spool, range(10, 60))) == 0
        append(spool, range(60, 70))
        wait_until(lambda: shelf.numbers == list(range(70)), 20, "the records of both arrive")
        wait_until(lambda: folders_in(root) == [spool.folder.path], 20, "that of the child is removed")
    assert max(shelf.came.values()) == 1


def test_the_lock_of_the_parent_outlives_its_children(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        assert in_child(lambda: spool.close(remove=True)) == 0
        assert in_child(lambda: append(spool, range(5))) == 0
        assert SpoolFolder.adopt(spool.folder.path) is None
        (orphan,) = orphans(tmp_path, {spool.folder.path})
        assert read_numbers(orphan.path) == list(range(5))
        orphan.release()


def test_a_child_does_not_hold_what_its_parent_has_adopted(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        append(spool, range(5))
    folder = SpoolFolder.adopt(spool.folder.path)
    assert folder is not None
    ready, go = multiprocessing.Pipe()
    pid = os.fork()
    if not pid:
        go.send("here")
        signal.pause()
        os._exit(0)
    try:
        assert ready.recv() == "here"
        folder.release()
        again = SpoolFolder.adopt(spool.folder.path)
        assert again is not None
        again.release()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_forked_child_closes_the_shipper_of_its_parent_at_once_and_changes_nothing(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root) as spool, shipping(root, shelf, spool) as shipper:
        append(spool, range(10))

        def close() -> None:
            assert not shipper.close(30)
            spool.sync()
            spool.close(remove=True)

        assert in_child(close) == 0
        append(spool, range(10, 20))
        wait_until(lambda: shelf.numbers == list(range(20)), 20, "the parent's records arrive")


def test_records_of_ended_processes_are_shipped_by_the_next_one_and_removed(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    for start in range(0, 50, 10):
        with opened(root) as spool:
            append(spool, range(start, start + 10))
    assert drain(root, shelf)
    assert shelf.numbers == list(range(50))
    assert folders_in(root) == []


def test_a_shipper_that_is_closed_before_its_first_search_for_orphans_still_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root) as spool:
        append(spool, range(10))
    shipper = Shipper(root, shelf, options=QUICK)

    def slowly(*held: Any) -> Iterator[SpoolFolder]:
        # The disk is slow: meanwhile the shipper is closed, and all senders have checked for records.
        shipper._closing.wait(10)  # noqa: SLF001 - the moment under test
        shipper._drained.wait(0.5)  # noqa: SLF001 - likewise: it must not be set
        yield from orphans(*held)

    monkeypatch.setattr("orchestrator.logs.shipping.shipper.orphans", slowly)
    shipper.start()
    assert shipper.close()
    assert shelf.numbers == list(range(10))


def test_two_shippers_at_one_root_deliver_each_record_once(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    for start in range(0, 200, 10):
        with opened(root) as spool:
            append(spool, range(start, start + 10))
    with opened(root) as one, opened(root) as two:
        with shipping(root, shelf, one) as first, shipping(root, shelf, two) as second:
            append(one, range(200, 300))
            append(two, range(300, 400))
            wait_until(lambda: shelf.numbers == list(range(400)), 20, "all arrive")
            assert first.counts.duplicates + second.counts.duplicates == 0
        assert max(shelf.came.values()) == 1


def test_a_live_process_keeps_its_folder_while_others_look_for_orphans(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root) as spool:
        append(spool, range(20))
        assert drain(root, shelf)
        assert shelf.numbers == []
        assert owner_of(spool.folder.path)["pid"] == os.getpid()
        append(spool, range(20, 30))
        assert read_numbers(spool.folder.path, whole=False) == list(range(30))


def test_a_backlog_of_large_records_does_not_keep_new_ones_waiting(tmp_path: Path) -> None:
    shelf, root = Shelf(), tmp_path / "spool"
    with opened(root, SpoolLimits(64 * KIB * KIB, 512 * KIB)) as old:
        append(old, range(600), "x" * 20_000)

    def slowly(records: Sequence[bytes]) -> BatchResult:
        threading.Event().wait(0.01)  # a server is slow
        return shelf.take(records)

    shelf.script = slowly
    options = ShipperOptions(max_actions=50, max_bytes=50_000, max_seconds=0.2, adopt_seconds=0.1)
    with opened(root) as spool, shipping(root, shelf, spool, options):
        wait_until(lambda: shelf.numbers, 20, "the backlog has begun to arrive")
        for number in (10_000, 10_001):
            append(spool, range(number, number + 1))
            wait_until(lambda n=number: n in shelf.numbers, 20, "the new record arrives")  # type: ignore[misc]
        assert len(shelf.numbers) < 600, "it came after the backlog"


LIMITED = """
import resource, sys
from pathlib import Path
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.writer import Spool
from tests.log_support import append
spool = Spool(Path(sys.argv[1]), SpoolLimits(2**20, 2**16, 0.01))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
taken = append(spool, range(200))
assert taken == list(range(len(taken))), taken
assert spool.dropped == 200 - len(taken) > 0
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
taken += append(spool, range(200, 300))
assert spool.spooled == len(taken)
spool.close()
print(*taken)
"""


def test_at_a_limit_of_the_system_records_are_dropped_whole_and_later_ones_are_taken(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "spool")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = folders_in(tmp_path / "spool")
    found = read_numbers(folder)
    assert found == list(map(int, done.stdout.split()))
    assert found[-100:] == list(range(200, 300))


def test_a_root_that_cannot_be_created_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolUnusable, match=r"cannot be used: Not a directory|cannot be used: File exists"):
        Spool(tmp_path / "file" / "spool", SMALL)


def test_a_killed_process_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    root = tmp_path / "spool"

    def die() -> None:
        append(Spool(root, SMALL), range(100))
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die) == -signal.SIGKILL
    (folder,) = folders_in(root)
    assert read_numbers(folder) == list(range(100))


def test_spools_are_for_their_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "a" / "spool"
    with opened(root) as spool:
        append(spool, range(1))
        for path in (root, *root.rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, path
        assert spool.folder.producer == spool.folder.path.name
