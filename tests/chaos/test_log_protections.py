"""The tests of logs fail when a protection is taken out; with all protections the same runs are clean."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from orchestrator.logs.errors import TargetUnreachable
from orchestrator.logs.shipping.target import BatchResult
from orchestrator.logs.spool.segments import segments_in
from tests.bulk_stub import BulkStub
from tests.chaos.log_mutations import Protection, take_out
from tests.log_support import (
    Shelf,
    append,
    dead_letters,
    drain,
    number_of,
    opened,
    shipping,
)
from tests.waiting import wait_until

WAIT_S = 20


def _missing(wanted: range, found: Sequence[int]) -> list[str]:
    return [f"{number} is missing" for number in wanted if number not in found]


def killed_while_the_server_is_away(root: Path) -> list[str]:
    def away(_records: Sequence[bytes]) -> BatchResult:
        raise TargetUnreachable("no server")

    shelf = Shelf(away)
    with opened(root) as spool, shipping(root, shelf, spool):
        append(spool, range(100))
        wait_until(lambda: shelf.requests, WAIT_S, "it was tried")
    later = Shelf()
    drain(root, later)
    return _missing(range(100), later.numbers)


def a_byte_is_flipped(root: Path) -> list[str]:
    with opened(root) as spool:
        append(spool, range(100), "y" * 100)
        first = segments_in(spool.folder.path)[0].path
    first.write_bytes(first.read_bytes().replace(b"yyyy", b"yyYy", 1))
    shelf = Shelf()
    drain(root, shelf)
    return [f"{number_of(record)} has changed" for record in shelf.records.values() if b"Y" in record]


def a_document_is_refused(root: Path) -> list[str]:
    shelf = Shelf()
    shelf.script = lambda records: shelf.refuse(records, lambda record: number_of(record) == 7)
    with opened(root) as spool, shipping(root, shelf, spool) as shipper:
        append(spool, range(20))
        wait_until(lambda: shipper.counts.dead, WAIT_S, "it was refused")
        wait_until(lambda: len(shelf.numbers) == 19, WAIT_S, "the others arrive")
    return [] if len(dead_letters(root)) == 1 else ["7 is neither delivered nor a dead letter"]


def half_of_the_items_are_not_taken(root: Path) -> list[str]:
    seen = set[str]()

    def first_busy(identity: str) -> tuple[int, str]:
        if int(identity.rpartition("-")[2], 16) % 2 or identity in seen:
            return 201, ""
        seen.add(identity)
        return 429, "es_rejected_execution_exception"

    stub = BulkStub(first_busy)
    with opened(root) as spool:
        append(spool, range(100))
    drain(root, stub.target())
    return _missing(range(100), [number_of(record) for record in stub.documents.values()])


def another_process_looks_for_orphans(root: Path) -> list[str]:
    shelf = Shelf()
    with opened(root) as spool:
        append(spool, range(10))
        drain(root, shelf)
        append(spool, range(10, 20))
    drain(root, shelf)
    return _missing(range(20), shelf.numbers)


WEAK_SPOTS: Sequence[tuple[Protection, Callable[[Path], list[str]]]] = (
    (Protection.ACKNOWLEDGED, killed_while_the_server_is_away),
    (Protection.CRC, a_byte_is_flipped),
    (Protection.DEAD_LETTER, a_document_is_refused),
    (Protection.RETRY, half_of_the_items_are_not_taken),
    (Protection.LOCK, another_process_looks_for_orphans),
)


@pytest.mark.parametrize(
    ("protection", "run"), [pytest.param(*spot, id=spot[0].value) for spot in WEAK_SPOTS]
)
def test_a_short_run_notices_that_a_protection_is_missing(
    protection: Protection,
    run: Callable[[Path], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(tmp_path / "with" / "spool") == []
    take_out(protection, monkeypatch.setattr)
    assert run(tmp_path / "without" / "spool") != []


def test_every_protection_has_a_run() -> None:
    assert {protection for protection, _ in WEAK_SPOTS} == set(Protection)
