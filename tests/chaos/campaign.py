"""One run of the suite: an ensemble, actors behind proxies, faults, a drain, and the check."""

import json
import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from kazoo.client import KazooClient

from queues.model.names import id_of
from tests.chaos.actor_process import ActorProcess
from tests.chaos.checker import check_folder
from tests.chaos.damage import Spoiler
from tests.chaos.ensemble_support import BreakableEnsemble, ensemble_offset_ms
from tests.chaos.history import History
from tests.chaos.log_judge import logged_violations
from tests.chaos.mutations import Protection
from tests.chaos.nemesis import Nemesis
from tests.chaos.proxy import FaultProxy, ProxyLoop
from tests.chaos.queue_actor import MAX_ATTEMPTS, TAKEN, WAYS, ActorConfig
from tests.chaos.report import Report
from tests.chaos.rules import Rules
from tests.chaos.schedule import Trouble, plan
from tests.chaos.snapshot import take_snapshot
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

ROOT = "/chaos"
SESSION_S = 4.0
SETTLE_S = 90.0  # after the last fault no item may stay unchanged for so long
_WARM_UP_S = 4.0
_PUTTING = 0.8  # share of the time in which items are put; faults come until the end


@dataclass(frozen=True, slots=True)
class Campaign:
    """Parameters of a run; the same seed gives the same faults at the same times."""

    seed: int
    items: int
    actors: int
    faults: int
    seconds: float
    kinds: Sequence[Trouble] = tuple(Trouble)
    without: Protection | None = None
    settle_s: float = SETTLE_S


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run; `stalled` names the items left in the queues.

    `logged` lists the violations found in ZooKeeper's transaction log.
    """

    report: Report
    applied: int
    failures: tuple[str, ...]
    stalled: str
    logged: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether no violation was found and all items ended."""
        return self.report.ok and not (self.stalled or self.failures or self.logged)


def run(campaign: Campaign, folder: Path) -> Outcome:
    """Run the campaign in `folder`, which keeps the histories and logs."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"a{number}" for number in range(campaign.actors)]
    with ExitStack() as stack:
        ensemble = stack.enter_context(BreakableEnsemble(folder / "zookeeper"))
        proxies = stack.enter_context(ProxyLoop())
        client = stack.enter_context(zookeeper_client(ensemble.hosts, timeout=20))
        offset = ensemble_offset_ms(client, "/clock")
        client.ensure_path(f"{ROOT}/config/clock")  # else not noticed without Protection.RESULTS
        history = stack.enter_context(History(folder, "nemesis"))
        begin, actors = time.monotonic(), dict[str, ActorProcess]()
        for name in names:
            proxy = stack.enter_context(FaultProxy(proxies, ensemble.hosts))
            config = ActorConfig(
                name=name,
                folder=str(folder),
                hosts=proxy.address,
                root=ROOT,
                session_s=SESSION_S,
                puts=campaign.items // campaign.actors,
                begin=begin,
                seconds=campaign.seconds * _PUTTING,
                without=campaign.without or "",
            )
            command = [sys.executable, "-m", "tests.chaos.queue_actor", json.dumps(asdict(config))]
            actors[name] = stack.enter_context(ActorProcess(name, folder, proxy, command))
        spoiler = Spoiler(client, ROOT, history, random.Random(campaign.seed))  # noqa: S311 - repeatable
        nemesis = Nemesis(actors, history, ensemble.hosts, ensemble=ensemble, spoil=spoiler.spoil)
        interval = (campaign.seconds - _WARM_UP_S) / max(1, campaign.faults)
        schedule = plan(
            campaign.seed,
            names,
            campaign.faults,
            interval_s=interval,
            session_s=SESSION_S,
            kinds=campaign.kinds,
        )
        threading.Event().wait(_WARM_UP_S)
        nemesis.run(schedule, threading.Event())
        ensemble.wait_until_whole()
        stalled = _settle(client, actors, campaign)
        for actor in actors.values():
            if actor.exit_code is None:
                actor.stop()
        rules = Rules(WAYS, MAX_ATTEMPTS, ensemble_offset_ms=offset)
        report = check_folder(folder, lambda only: take_snapshot(client, ROOT, only), rules)
        logged = tuple(logged_violations([folder / "zookeeper"], ROOT))
        return Outcome(report, nemesis.applied, tuple(nemesis.failures), stalled, logged)


def _settle(client: KazooClient, actors: dict[str, ActorProcess], campaign: Campaign) -> str:
    """Wait until the queues are empty; else name the items that did not change for `settle_s`."""
    since: dict[str, float] = {}  # by location of a token, held or not: when it was first seen

    def located() -> Iterator[str]:
        for pool in client.get_children(f"{ROOT}/queues/{TAKEN[0]}"):
            held = set(client.get_children(f"{ROOT}/locks/{pool}"))
            for queue in TAKEN:
                for name in client.get_children(f"{ROOT}/queues/{queue}/{pool}"):
                    yield f"{queue}/{pool}/{name}{' held' if id_of(name) in held else ''}"

    def stalled() -> list[str]:
        now = time.monotonic()
        return [token for token, seen in since.items() if now - seen > campaign.settle_s]

    def is_over() -> bool:
        now = time.monotonic()
        seen = {token: since.get(token, now) for token in located()}
        since.clear()
        since.update(seen)
        return not since or bool(stalled())

    ended = [f"{name} ended with {actor.exit_code}" for name, actor in actors.items() if actor.exit_code]
    try:
        wait_until(is_over, 4 * campaign.settle_s, "the queues are empty, or an item makes no progress")
    except AssertionError:
        ended.append(f"{len(since)} items do not end")
    if left := stalled():
        ended.append(f"{len(left)} items make no progress, first {left[:5]}")
    return "; ".join(ended)
