"""The queues against a model in one dictionary, under random operations in random order."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from queues.claims.claim import Claim
from queues.model.errors import (
    ClaimLost,
    CorruptRecord,
    IdTaken,
    ItemHeld,
    ItemNotFound,
    NotClaimed,
    PutsFailed,
)
from queues.model.names import Layout, Token
from queues.model.operations import Operation, Set
from queues.model.record import NewItem, Record
from queues.queue_set import QueueSet
from queues.session import Posted, Session
from queues.store.commit import commit
from tests.claims_support import Collector, Lost
from tests.queues_support import QUEUES, expire, open_session
from tests.waiting import wait_until

LIVE = QUEUES[:-1]
POOLS = ("default", "team")
CLIENTS = range(2)
NEVER_MS = 4_000_000_000_000  # in a hundred years

IDS = st.sampled_from([f"i{number}" for number in range(6)])
LIVE_QUEUES = st.sampled_from(LIVE)
POOL = st.sampled_from(POOLS)
QUEUE_AND_POOL = st.tuples(LIVE_QUEUES, POOL)
CLIENT = st.sampled_from(list(CLIENTS))
DUE = st.one_of(st.integers(1, 20), st.just(NEVER_MS))  # long due, or not due in our time
NUMBER = st.integers(0, 9)


@dataclass(frozen=True)
class Item:
    """The state of an item in the model."""

    queue: str
    pool: str
    token: Token
    n: int
    origin: str = ""  # of a dead one: where it came from
    claim: Claim | None = None


@dataclass
class Faults:
    """Replies that are still to be lost."""

    left: int = 0


class Queues(RuleBasedStateMachine):
    """Two clients and an operator act in any order; after each act the server equals the model."""

    sessions: Sequence[Session]
    faults: Faults
    root: str
    runs = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).runs += 1
        layout = Layout(f"{self.root}/run-{self.runs}")
        self.clients = [
            QueueSet(session, layout, QUEUES, owner=f"client-{n}") for n, session in enumerate(self.sessions)
        ]
        self.items: dict[str, Item] = {}
        self.history: list[tuple[str, str, Token]] = []  # every token that ever existed
        self.stale: list[Claim] = []
        self.paused: set[str] = set()
        self.expired = False

    # ------------------------------------------------------------------ the model
    def note(self, record: Record, *, claim: Claim | None = None, origin: str = "") -> None:
        """The item is now as in this record."""
        n = record.payload["n"]
        self.items[record.id] = Item(record.queue, record.pool, record.token, n, origin, claim)
        self.history.append((record.queue, record.pool, record.token))

    def held(self) -> list[str]:
        return sorted(item_id for item_id, item in self.items.items() if item.claim is not None)

    def is_held_for(self, client: int, item_id: str) -> bool:
        """Whether the item is held, or this client has not noticed the loss of its claim."""
        return self.items[item_id].claim is not None or self.clients[client].holds(item_id)

    def drop_claim(self, item_id: str) -> None:
        """Its holder has lost it and has not noticed."""
        claim = self.items[item_id].claim
        if claim is not None:
            self.stale.append(claim)
            self.items[item_id] = replace(self.items[item_id], claim=None)

    @initialize()
    def make_pools(self) -> None:
        for pool in POOLS:
            self.clients[0].ensure_pool(pool)

    # ------------------------------------------------------------------ put
    @rule(
        client=CLIENT, item_id=IDS, queue_and_pool=QUEUE_AND_POOL, due=DUE, n=NUMBER, existing=st.booleans()
    )
    def put(
        self, client: int, item_id: str, queue_and_pool: tuple[str, str], due: int, n: int, *, existing: bool
    ) -> None:
        queue, pool = queue_and_pool

        def act() -> Record:
            return self.clients[client].put(
                queue, item_id, {"n": n}, pool=pool, due_ms=due, existing=existing
            )

        known = self.items.get(item_id)
        if known is None:
            record = act()
            assert (record.queue, record.pool, record.token.due) == (queue, pool, due)
            self.note(record)
        elif existing:
            assert act().token == known.token
        else:
            with pytest.raises(IdTaken):
                act()

    @rule(client=CLIENT, ids=st.lists(IDS, min_size=1, max_size=4), queue=LIVE_QUEUES, pool=POOL, due=DUE)
    def put_many(self, client: int, ids: list[str], queue: str, pool: str, due: int) -> None:
        new = [NewItem({"n": n}, item_id, pool, due_ms=due) for n, item_id in enumerate(ids)]
        taken = {item_id for item_id in ids if item_id in self.items or ids.count(item_id) > 1}
        if taken:
            with pytest.raises(PutsFailed) as failed:
                self.clients[client].put_many(queue, new)
            assert set(failed.value.errors) == taken
            assert all(isinstance(error, IdTaken) for error in failed.value.errors.values())
        else:
            self.clients[client].put_many(queue, new)
        for item_id in dict.fromkeys(ids):
            if item_id not in self.items:
                self.note(self.clients[client].get(item_id))

    # ------------------------------------------------------------------ claim
    @rule(client=CLIENT, data=st.data())
    @precondition(lambda self: self.items)
    def claim(self, client: int, data: st.DataObject) -> None:
        item_id = data.draw(st.sampled_from(sorted(self.items)))
        item = self.items[item_id]
        is_refused = self.is_held_for(client, item_id) or item.pool in self.paused
        claim = self.clients[client].claim(item.queue, item.pool, item.token)
        if is_refused:
            assert claim is None
            return
        assert claim is not None
        assert (claim.id, claim.queue, claim.payload) == (item_id, item.queue, {"n": item.n})
        self.items[item_id] = replace(item, claim=claim)

    @rule(client=CLIENT, data=st.data())
    @precondition(lambda self: self.history)
    def claim_as_listed_long_ago(self, client: int, data: st.DataObject) -> None:
        queue, pool, token = data.draw(st.sampled_from(self.history))
        item = self.items.get(token.id)
        if item is None:
            with pytest.raises(ItemNotFound):
                self.clients[client].claim(queue, pool, token)
        elif (item.queue, item.pool, item.token) != (queue, pool, token) or item.claim is not None:
            assert self.clients[client].claim(queue, pool, token) is None

    # ------------------------------------------------------------------ acts of a holder
    def _draw_held(self, data: st.DataObject) -> tuple[str, Item, Claim]:
        item_id = data.draw(st.sampled_from(self.held()))
        item = self.items[item_id]
        assert item.claim is not None
        return item_id, item, item.claim

    @rule(
        data=st.data(),
        queue=st.none() | LIVE_QUEUES,
        pool=st.none() | POOL,
        due=st.none() | DUE,
        n=NUMBER,
        release=st.booleans(),
    )
    @precondition(lambda self: self.held())
    def step(
        self,
        data: st.DataObject,
        queue: str | None,
        pool: str | None,
        due: int | None,
        n: int,
        *,
        release: bool,
    ) -> None:
        item_id, item, claim = self._draw_held(data)
        claim.commit(queue=queue, pool=pool, due=due, payload={"n": n}, release=release)
        assert claim.held is not release
        token = item.token if due is None else replace(item.token, due=due)
        assert (claim.record.queue, claim.record.pool) == (queue or item.queue, pool or item.pool)
        assert claim.record.token == token
        self.note(claim.record, claim=None if release else claim)
        assert self.items[item_id].n == n

    @rule(data=st.data(), how=st.sampled_from(["release", "remove", "die", "abandon"]))
    @precondition(lambda self: self.held())
    def end(self, data: st.DataObject, how: str) -> None:
        item_id, item, claim = self._draw_held(data)
        self.items[item_id] = replace(item, claim=None)
        if how == "release":
            claim.release()
        elif how == "remove":
            claim.remove()
            del self.items[item_id]
        elif how == "die":
            origin = item.origin or item.queue
            error = {"reason": "test", "queue": origin}
            claim.commit(queue="dead", failures=3, error=error, release=True)
            self.note(claim.record, origin=origin)
        else:
            claim.abandon()  # its lock is left, until a rescan of its client finds it
            for client in self.clients:
                client.release_orphan_locks(item.pool, [item_id])

    @rule(data=st.data(), how=st.sampled_from(["commit", "move", "release", "remove"]))
    @precondition(lambda self: self.stale)
    def use_a_lost_claim(self, data: st.DataObject, how: str) -> None:
        claim = self.stale.pop(data.draw(st.integers(0, len(self.stale) - 1)))
        acts = {
            "commit": lambda: claim.commit(payload={"n": 99}),
            "move": lambda: claim.commit(queue="finish", pool="team", release=True),
            "release": claim.release,
            "remove": claim.remove,
        }
        if how in {"release", "remove"} and self.faults.left > 0:
            # The item is released or gone; whether by this very request cannot be determined.
            with suppress(ClaimLost):
                acts[how]()
        else:
            with pytest.raises(ClaimLost):
                acts[how]()
        assert not claim.held

    # ------------------------------------------------------------------ acts of an operator
    @rule(client=CLIENT, item_id=IDS, force=st.booleans(), data=st.data())
    def operate(self, client: int, item_id: str, data: st.DataObject, *, force: bool) -> None:
        queues, item = self.clients[client], self.items.get(item_id)
        is_dead = item is not None and item.queue == "dead"
        act = data.draw(st.sampled_from(["remove", "move"] if is_dead else ["remove", "move", "requeue"]))
        queue, pool = data.draw(LIVE_QUEUES), data.draw(POOL)
        before = queues.clock.now_ms()

        def do() -> Record | None:
            if act == "remove":
                queues.remove(item_id, force=force)
                return None
            if act == "move":
                return queues.move(item_id, queue, pool=pool, payload={"n": 5}, force=force)
            return queues.requeue(item_id, delay_ms=1_000_000, force=force)

        if item is None:
            with pytest.raises(ItemNotFound):
                do()
            return
        if self.is_held_for(client, item_id) and not force:
            with pytest.raises(ItemHeld):
                do()
            return
        self.drop_claim(item_id)
        record = do()
        if record is None:
            del self.items[item_id]
        elif act == "move":
            assert (record.queue, record.pool, record.token) == (queue, pool, item.token)
            self.note(record)
        else:
            assert before <= record.token.due - 1_000_000 <= queues.clock.now_ms()
            assert (record.queue, record.token.seq) == (item.queue, item.token.seq)
            self.note(record)

    @rule(client=CLIENT, pool=POOL)
    def replay(self, client: int, pool: str) -> None:
        queues = self.clients[client]
        dead = {i: item for i, item in self.items.items() if (item.queue, item.pool) == ("dead", pool)}
        held = {item_id for item_id in dead if self.is_held_for(client, item_id)}
        outcomes = queues.replay(pool=pool)
        assert set(outcomes) == set(dead)
        for item_id, item in dead.items():
            if item_id in held:
                assert isinstance(outcomes[item_id], NotClaimed)
                continue
            assert outcomes[item_id] is None
            record = queues.get(item_id)
            # Who took it from dead for himself and left it there has overwritten where it came from.
            assert record.queue == (item.origin if item.origin in LIVE else LIVE[0])
            assert record.token.seq == item.token.seq
            assert (record.failures, record.error) == (0, None)
            self.note(record)

    @rule(client=CLIENT, data=st.data())
    @precondition(lambda self: self.items)
    def damage_move_to_dead_and_repair(self, client: int, data: st.DataObject) -> None:
        queues = self.clients[client]
        item_id = data.draw(st.sampled_from(sorted(self.items)))
        item = self.items[item_id]
        if self.is_held_for(client, item_id) or item.queue == "dead":
            return
        path = queues.layout.record(item_id)
        found = queues.session.get(path)
        assert found is not None
        commit(queues.session, [Set(path, b"garbage", -1)])
        with pytest.raises(CorruptRecord) as caught:
            queues.claim(item.queue, item.pool, item.token)
        assert queues.move_to_dead(item.queue, item.pool, item.token, caught.value)
        assert isinstance(queues.replay([item_id], pool=item.pool)[item_id], CorruptRecord)
        commit(queues.session, [Set(path, found[0], -1)])
        assert queues.replay([item_id], pool=item.pool) == {item_id: None}
        record = queues.get(item_id)
        assert (record.queue, record.payload["n"]) == (item.queue, item.n)
        self.note(record)

    @rule(client=CLIENT, pool=POOL)
    def pause_or_resume(self, client: int, pool: str) -> None:
        self.paused ^= {pool}
        self.clients[client].pools.change(pool, paused=pool in self.paused)

    # ------------------------------------------------------------------ faults
    @rule()
    def lose_the_next_reply(self) -> None:
        self.faults.left = 1

    @rule(client=CLIENT)
    @precondition(lambda self: not self.expired and self.held())
    def lose_a_session(self, client: int) -> None:
        self.expired = True  # once in a run, since it is slow
        expire(self.sessions[client])
        for item_id, item in list(self.items.items()):
            if item.claim is not None and item.claim.hold.session is self.sessions[client]:
                self.drop_claim(item_id)
                with pytest.raises(ClaimLost):
                    item.claim.check()

    # ------------------------------------------------------------------ invariants
    @invariant()
    def the_server_is_as_the_model_says(self) -> None:
        queues, layout = self.clients[0], self.clients[0].layout
        for pool in POOLS:
            for queue in QUEUES:
                expected = [i.token for i in self.items.values() if (i.queue, i.pool) == (queue, pool)]
                assert queues.tokens(queue, pool) == sorted(expected)
            held = sorted(i for i in self.held() if self.items[i].pool == pool)
            assert sorted(queues.session.children(layout.locks(pool)) or ()) == held
        for item_id, found in zip(
            self.items, queues.session.get_many([layout.record(i) for i in self.items]), strict=True
        ):
            assert found is not None
            record, item = Record.decode(item_id, found[0]), self.items[item_id]
            assert (record.queue, record.pool, record.token) == (item.queue, item.pool, item.token)
            assert record.payload == {"n": item.n}

    def teardown(self) -> None:
        """A consumer gets all due and free items, each once and in order; those of paused pools later."""
        if not self.items:
            return
        self.faults.left = 0
        queues = self.clients[0]
        worker = QueueSet(queues.session, queues.layout, QUEUES, owner="worker")
        expected = {pool: self._expected(pool) for pool in POOLS}
        with Collector(worker, *LIVE, pools=POOLS) as seen:
            self._wait_for(seen, {pool: [] if pool in self.paused else expected[pool] for pool in POOLS})
            for pool in self.paused:
                queues.pools.change(pool, paused=False)
            self._wait_for(seen, expected)

    def _expected(self, pool: str) -> list[str]:
        free = [i for i in self.items.values() if i.pool == pool and i.claim is None and i.queue in LIVE]
        soon = self.clients[0].clock.now_ms() + 60_000  # the clocks of two clients differ by a little
        due = [item for item in free if item.token.due <= soon]
        return [item.token.id for item in sorted(due, key=lambda item: (LIVE.index(item.queue), item.token))]

    @staticmethod
    def _wait_for(seen: Collector, expected: dict[str, list[str]]) -> None:
        def found() -> dict[str, list[str]]:
            claims = list(seen.claims)
            return {pool: [claim.id for claim in claims if claim.record.pool == pool] for pool in POOLS}

        total = sum(map(len, expected.values()))
        # A change without a watch event is found by a rescan within 5 s, or by the next on a busy machine.
        wait_until(lambda: len(seen.claims) >= total, 20, f"{expected} are handed out")
        assert found() == expected


@pytest.fixture
def machine(
    zookeeper_hosts: str, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[type[Queues]]:
    """The state machine on sessions that all its runs share, each below another root."""
    sessions = [open_session(zookeeper_hosts) for _ in CLIENTS]
    lost = Faults()
    post = Session.post

    def lossy(session: Session, operations: Sequence[Operation]) -> Posted:
        posted = post(session, operations)
        if lost.left > 0:
            lost.left -= 1
            posted.results(10)  # carried out, and the reply is lost
            return Lost()
        return posted

    monkeypatch.setattr(Session, "post", lossy)
    made: dict[str, Any] = {"sessions": sessions, "faults": lost, "root": zookeeper_root, "runs": 0}
    yield type("Queues", (Queues,), made)
    for session in sessions:
        session.close()


def test_the_queues_do_what_a_simple_model_does(machine: type[Queues]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            # A failure that takes its seconds would take hours to be made smaller.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
        ),
    )
