"""For each protection of the queues, the shortest test that fails without it.

With the protection the tests pass: they run in their own modules. A whole campaign also shows that the chaos
suite fails without each of these protections (`test_campaign.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from queues.session import Session
from tests.chaos.mutations import Protection, take_out
from tests.claims_support import lose_reply, names_node
from tests.integration import test_bundle as bundle
from tests.integration import test_consumer as consumer
from tests.integration import test_queue_protocol as protocol
from tests.queues_support import Open
from tests.waiting import wait_until

ITEM = "item"
GIVEN_UP_S = 1.5
"""An item at a wrong location is found by the first rescan, after 0.3 s in that test."""


def test_a_claim_that_never_arrived_is_not_taken_for_held_when_another_was_faster(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_queues("first"), open_queues("second")
    token = first.put("accept", ITEM, {}).token
    faster = []
    lock = first.layout.lock("default", ITEM)
    lose_reply(
        monkeypatch,
        names_node(lock),
        lambda: faster.append(second.claim("accept", "default", token)),
        arrives=False,
    )
    assert first.claim("accept", "default", token) is None
    (claim,) = faster
    assert claim is not None
    claim.commit(queue="running")


@dataclass
class Stage:
    """The fixtures of the tests."""

    open_queues: Open
    root: str
    monkeypatch: pytest.MonkeyPatch

    @property
    def session(self) -> Session:
        session = self.open_queues().session
        session.ensure_path(self.root)
        return session


def a_stale_holder_steps(stage: Stage) -> None:
    protocol.test_the_fence_refuses_a_stale_holder_even_when_it_does_not_know_of_its_loss(stage.open_queues)


def a_stale_listing_claims(stage: Stage) -> None:
    protocol.test_a_stale_listing_cannot_claim_an_item_that_has_moved_on(stage.open_queues)


def a_step_of_a_stale_holder_is_refused_in_doubt(stage: Stage) -> None:
    protocol.test_a_step_of_a_stale_holder_is_not_taken_for_its_own_lost_reply(stage.open_queues)


def a_claim_is_refused_in_doubt(stage: Stage) -> None:
    test_a_claim_that_never_arrived_is_not_taken_for_held_when_another_was_faster(
        stage.open_queues, stage.monkeypatch
    )


def a_multi_is_refused(stage: Stage) -> None:
    protocol.test_a_failed_multi_raises_and_names_the_operation_that_was_refused(stage.open_queues)


def one_of_many_in_a_multi_is_refused(stage: Stage) -> None:
    bundle.test_of_two_that_want_the_same_node_the_first_gets_it(stage.session, stage.root)


def a_claim_is_abandoned(stage: Stage) -> None:
    patience = iter([10.0, GIVEN_UP_S])  # timeouts before and after the claim is abandoned

    def wait(condition: Callable[[], bool], _timeout: float, what: str) -> None:
        wait_until(condition, next(patience), what)

    stage.monkeypatch.setattr(consumer, "wait_until", wait)
    collectors: list[consumer.Collector] = []

    def open_collector(*given: object, **named: object) -> consumer.Collector:
        collector = consumer.Collector(*given, **named)  # type: ignore[arg-type]  # the arguments of the test
        collectors.append(collector)
        collector.consumer.start()
        return collector

    try:
        consumer.test_an_abandoned_claim_is_found_by_the_rescan(stage.open_queues, open_collector)
    finally:
        for collector in collectors:
            collector.consumer.stop()


@dataclass(frozen=True)
class Proof:
    """`test` fails without the protection, and says this."""

    protection: Protection
    test: Callable[[Stage], None]
    says: str


NO_ERROR = "DID NOT RAISE"
PROOFS = (
    Proof(Protection.FENCE, a_stale_holder_steps, NO_ERROR),
    Proof(Protection.TOKEN_CHECK, a_stale_listing_claims, "is None"),
    Proof(Protection.NONCE, a_step_of_a_stale_holder_is_refused_in_doubt, NO_ERROR),
    Proof(Protection.NONCE, a_claim_is_refused_in_doubt, "is None"),
    Proof(Protection.RESULTS, a_multi_is_refused, NO_ERROR),
    Proof(Protection.RESULTS, one_of_many_in_a_multi_is_refused, "NodeExists"),
    Proof(Protection.RESCAN, a_claim_is_abandoned, rf"not within {GIVEN_UP_S:g} s: .*'stray'.* handed out"),
)


@pytest.mark.parametrize(
    "proof", [pytest.param(proof, id=f"{proof.protection}-{proof.test.__name__}") for proof in PROOFS]
)
def test_a_test_fails_without_the_protection(
    proof: Proof, open_queues: Open, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_queues().clock.now_ms()  # else not noticed without Protection.RESULTS
    take_out(proof.protection, monkeypatch.setattr)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=proof.says):
        proof.test(Stage(open_queues, zookeeper_root, monkeypatch))


def test_every_protection_has_a_proof() -> None:
    assert {proof.protection for proof in PROOFS} == set(Protection)
