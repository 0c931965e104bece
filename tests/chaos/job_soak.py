"""Jobs of all kinds while workers are killed and stopped and the server restarts.

`python -m tests.chaos.job_soak --minutes 60` runs soaks in sequence, each with its own seed.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from orchestrator.model.definition import build_definition
from tests.chaos.job_mix import CAPPED_POOL, POOL_CAP, Planned, mix
from tests.chaos.job_site import SESSION_S, Site
from tests.chaos.log_judge import logged_violations
from tests.chaos.proxy import FaultProxy, ProxyLoop
from tests.servers.wrong_clock import FailingOver
from tests.workers import WorkerProcess

ROOT = "/soak"
SETTLE_S = 90.0
"""From the last fault to the last job; on a busy machine the start of a worker takes seconds."""

_WARM_UP_S = 2.0
_STOPPED_S = 1.5 * SESSION_S
_JUMP_S = 7200.0
_WRONG_S = 4.0
_LONG_AWAY_S = 1.5 * SESSION_S
_SHARE_OF_JOBS = 0.85  # share of the time in which jobs are submitted; faults come until the end
_STEP_S = 0.05
_AGAIN_S = 0.2  # between two attempts to remove a job that runs
_RACERS = 4  # concurrent jobs whose every turn is followed


class Trouble(StrEnum):
    """Faults of the workers and their server."""

    KILL = "kill -9 of a worker, which is started again"
    STOP = "a worker stops for longer than its session"
    SUSPEND = "the machine of a worker is suspended for longer than its session"
    CLOCK = "a failover to a server whose clock is hours off, and back"
    SERVER = "kill -9 of the server, which is started again"
    SERVER_LONG = "the server is away for longer than a session"
    REPLY = "the replies to the next multis of a worker, or of the drivers, are lost"
    STALE_STOPS = "requests to stop for earlier jobs are created and deleted"


KINDS = (
    Trouble.KILL,
    Trouble.KILL,
    Trouble.STOP,
    Trouble.SUSPEND,
    Trouble.CLOCK,
    Trouble.SERVER,
    Trouble.REPLY,
    Trouble.REPLY,
    Trouble.STALE_STOPS,
)
_LOST_REPLIES = 3  # one after the other: each of them breaks its connection


@dataclass(frozen=True, slots=True)
class Soak:
    """Parameters of one run."""

    seed: int
    jobs: int = 500
    workers: int = 3
    slots: int = 8
    seconds: float = 75.0
    faults: int = 16
    kinds: Sequence[Trouble] = KINDS
    without: str = ""
    settle_s: float = SETTLE_S


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run: the violations, the faults applied."""

    violations: Sequence[str]
    faults: Counter[str]
    starts: int
    highest: Counter[str]

    @property
    def ok(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        lines = [f"{self.starts} starts, highest {dict(self.highest)}"]
        lines += [f"{count} x {name}" for name, count in self.faults.items()]
        return "\n".join([*lines, *self.violations[:20], f"{len(self.violations)} violations"])


def run(soak: Soak, folder: Path) -> Outcome:
    """Run the soak in `folder`, which keeps logs and submissions."""
    folder.mkdir(parents=True, exist_ok=True)
    with FailingOver(folder) as server, ProxyLoop() as loop, ExitStack() as stack:
        proxies: list[FaultProxy] = []

        def way() -> str:
            proxies.append(stack.enter_context(FaultProxy(loop, server.hosts)))
            return proxies[-1].address

        site = Site(
            folder,
            server.hosts,
            ROOT,
            workers=soak.workers,
            slots=soak.slots,
            without=soak.without,
            way=way,
        )
        with site:
            site.cap_pool(CAPPED_POOL, POOL_CAP)
            with ThreadPoolExecutor(_RACERS) as racers:
                play = _Play(soak, site, server, proxies, racers)
                play.run()
            site.wait_finished(soak.settle_s)
            site.drain()
            names = {key: site.backend.highest[key] for key in site.caps}
            violations = [*site.judge(), *logged_violations([server.data_dir], ROOT, server.ahead_ms)]
            return Outcome(violations, play.applied, sum(site.starts().values()), Counter(names))


class _Play:
    """Submits jobs and applies faults, each at its time."""

    def __init__(
        self,
        soak: Soak,
        site: Site,
        server: FailingOver,
        proxies: Sequence[FaultProxy],
        racers: ThreadPoolExecutor,
    ) -> None:
        self._site, self._server, self._proxies, self._racers = site, server, proxies, racers
        self._rng = random.Random(soak.seed)  # noqa: S311 - repeatable
        self._races: list[Future[None]] = []
        self.applied: Counter[str] = Counter()
        self._due: list[tuple[float, Callable[[], None]]] = []
        for job in mix(soak.seed, soak.jobs, soak.seconds * _SHARE_OF_JOBS):
            self._due.append((job.at, partial(self._submit, job)))
        interval = (soak.seconds - _WARM_UP_S) / max(1, soak.faults)
        for number in range(soak.faults):
            at = _WARM_UP_S + interval * (number + self._rng.random())
            # Each kind occurs, in random order.
            kind = soak.kinds[number] if number < len(soak.kinds) else self._rng.choice(soak.kinds)
            self._due.append((at, partial(self._apply, kind)))

    def run(self) -> None:
        began = time.monotonic()
        while self._due:
            self._due.sort(key=lambda due: due[0])
            at, act = self._due[0]
            if (left := at - (time.monotonic() - began)) > 0:
                time.sleep(min(left, _STEP_S))
                self._site.supervise()
                continue
            del self._due[0]
            self._now = at
            act()
        while not all(race.done() for race in self._races):  # they wait for jobs, and jobs for workers
            self._site.supervise()
            time.sleep(_STEP_S)

    def _submit(self, job: Planned) -> None:
        if job.kind.is_reused and not self._site.is_removed(job.id):
            self._due.append((self._now + _AGAIN_S, partial(self._submit, job)))
            return
        document = {"name": "soak", "file": "job.py", "retry": {"attempts": 1}, **job.fields}
        self._site.submit(job.id, build_definition(document, job.id), job.kind.ends, delay=job.delay)
        if job.kill_after is not None:
            self._due.append((self._now + job.kill_after, partial(self._site.kill, job.id)))
        if job.kill_turn is not None:
            race = self._racers.submit(self._site.kill, job.id, after_turns=job.kill_turn)
            self._races.append(race)

    def _apply(self, trouble: Trouble) -> None:
        self.applied[trouble.value] += 1
        worker = self._rng.choice(self._site.workers)
        match trouble:
            case Trouble.KILL:
                worker.kill()
                worker.start()
            case Trouble.STOP:
                worker.signal(signal.SIGSTOP)
                self._due.append((self._now + _STOPPED_S, partial(self._wake, worker, worker.process.pid)))
            case Trouble.SUSPEND:
                worker.suspend()
                self._due.append((self._now + _STOPPED_S, partial(self._resume, worker, worker.process.pid)))
            case Trouble.SERVER:
                self._server.crash()
                self._server.recover()
            case Trouble.SERVER_LONG:
                self._server.crash()
                time.sleep(_LONG_AWAY_S)
                self._server.recover()
            case Trouble.REPLY:
                proxy = self._rng.choice(self._proxies)
                for _ in range(_LOST_REPLIES):
                    proxy.drop_next_multi_reply()
            case Trouble.CLOCK:
                self._server.fail_over(self._rng.choice([_JUMP_S, -_JUMP_S]))
                self._due.append((self._now + _WRONG_S, partial(self._server.fail_over, 0)))
            case Trouble.STALE_STOPS:
                self._site.leave_stops()

    def _wake(self, worker: WorkerProcess, pid: int) -> None:
        if worker.process.pid == pid:  # else it was killed meanwhile
            worker.signal(signal.SIGCONT)

    def _resume(self, worker: WorkerProcess, pid: int) -> None:
        if worker.process.pid == pid:
            worker.resume()


def main() -> int:
    """Run soaks until the time is over; on a violation keep its folder and return 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.job_soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000, help="of the first soak")
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=300, help="of one soak")
    parser.add_argument("--faults", type=int, default=60)
    arguments = parser.parse_args()
    deadline, seed = time.monotonic() + 60 * arguments.minutes, arguments.seed
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"soak-{seed}-"))
        soak = Soak(
            seed,
            arguments.jobs,
            seconds=arguments.seconds,
            faults=arguments.faults,
            kinds=(*KINDS, Trouble.SERVER_LONG),
        )
        outcome = run(soak, folder)
        print(f"seed {seed}: {outcome}", flush=True)  # noqa: T201 - its result
        if not outcome.ok:
            print(f"everything is in {folder}")  # noqa: T201 - likewise
            return 1
        shutil.rmtree(folder)
        seed += 1
        if time.monotonic() >= deadline:
            return 0


if __name__ == "__main__":
    sys.exit(main())
