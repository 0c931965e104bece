"""A process that logs is killed at any moment: each acknowledged record is in Elasticsearch once.

CI kills one process at each of the points and some at random moments; a whole campaign kills as many as fit
into its time; `make log-kills COUNT=200` kills 200.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.logs.shipping.target import ShipperOptions
from orchestrator.logs.spool.folder import folders_in
from tests.chaos.log_points import Point
from tests.chaos.log_producer import ProducerRun, zygote
from tests.log_index import LogIndex
from tests.log_support import dead_letters, drain
from tests.sampling import chance, is_whole, seed

COUNT = int(os.environ.get("ORCHESTRATOR_LOG_KILLS", "0"))
SHORT_S = 40
AT_RANDOM = 5  # in CI, where each of the points comes once
LONGEST_S = 0.8  # of a producer: several checkpoints, dozens of segments
POINT_S = 1.5  # time to reach a point; then the process is killed anyway
NUMBERS = 1_000_000  # range of numbers of each producer

LAST = ShipperOptions(adopt_seconds=0.1, status_seconds=0.1, flush_seconds=120)

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(300 + 5 * COUNT)]


def ends(rng: random.Random) -> Iterator[Point | None]:
    """The point at which each process dies; None = at a random moment."""
    every = [*Point, *[None] * len(Point)]
    if COUNT:
        yield from (rng.choice(every) for _ in range(COUNT))
    elif is_whole():
        since = time.monotonic()
        while time.monotonic() - since < SHORT_S:
            yield rng.choice(every)
    else:
        short = every[: len(Point) + AT_RANDOM]
        yield from rng.sample(short, len(short))


def producer_run(
    rng: random.Random, number: int, point: Point | None, root: Path, index: LogIndex
) -> ProducerRun:
    seconds = rng.uniform(0, LONGEST_S) if point is None else POINT_S
    acks = root.parent / f"acks-{number}"
    first = number * NUMBERS
    times = rng.choice([1, 1, 2, 5])
    return ProducerRun(str(root), index.url, index.alias, str(acks), first, seconds, point, times)


def acknowledged(folder: Path) -> list[int]:
    # The last line may be torn; its record was appended all the same.
    return [
        int(line)
        for path in folder.glob("acks-*")
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]


@pytest.mark.usefixtures("process_mark")
def test_what_was_acknowledged_is_found_once_whenever_processes_are_killed(
    log_index: LogIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = chance("log kills")
    root, kills, since = tmp_path / "spool", Counter[str](), time.monotonic()
    with (tmp_path / "errors").open("wb") as errors, zygote(errors) as producers:
        for point in ends(rng):
            run = producer_run(rng, kills.total(), point, root, log_index)
            code, has_died = producers.execute(run)
            assert code == -signal.SIGKILL, (tmp_path / "errors").read_text()
            kills[str(point) if has_died else "at a random moment"] += 1
    left = len(folders_in(root))
    assert drain(root, log_index.target(), LAST)
    acks = acknowledged(tmp_path)
    found = Counter(log_index.numbers())
    lost = set(acks) - set(found)
    doubles = [number for number, count in found.items() if count > 1]
    points = ", ".join(f"{count} {point}" for point, count in sorted(kills.items()))
    with capsys.disabled():
        print(  # noqa: T201 - the counts are what a campaign is for
            f"\nseed {seed()}: {kills.total()} kills ({points}) in {time.monotonic() - since:.0f} s; "
            f"{len(acks):,} records acknowledged, {len(found):,} found, "
            f"{len(lost)} lost, {len(doubles)} twice, "
            f"{len(set(found) - set(acks))} killed between the record and its acknowledgement; "
            f"{left} spools were left to the last process"
        )
    assert not lost, sorted(lost)[:20]
    assert not doubles, doubles[:20]
    assert dead_letters(root) == []
    assert folders_in(root) == []
    assert (tmp_path / "errors").read_text() == ""
    assert len(acks) > 100 * kills.total() / 2
