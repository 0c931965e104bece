"""Each invariant: a history that keeps it and one that violates it."""

import json
from dataclasses import replace

import pytest

from tests.chaos.events import Kind
from tests.chaos.report import Invariant, merge
from tests.chaos.snapshot import Record, Token
from tests.chaos.trace import POOL, RULES, Trace, judge, spoilt


def put_and_moved() -> Trace:
    return Trace().put().claim("a", 1).step("a", 2).left(2, "running")


def removed() -> Trace:
    return Trace().put().claim("a", 1).remove("a", 1)


def retried(first: int, second: int) -> Trace:
    trace = Trace().put().claim("a", 1).start("a", 1, attempt=first).step("a", 2, "accept->accept")
    return trace.claim("b", 3).start("b", 3, attempt=second).step("b", 4).left(4, "running")


def killed_at_work(first: int, second: int) -> Trace:
    trace = Trace().put().claim("a", 1).start("a", 1, attempt=first).step("a", 2, acked=False)
    return trace.claim("b", 2).start("b", 2, attempt=second).step("b", 3).left(3, "running")


GOOD = {
    "moved": put_and_moved(),
    "removed": removed(),
    "put again after its removal": removed().put("r2").left(0, "accept", key="r2"),
    "put refused": put_and_moved()
    .add(Kind.PUT_SENT, "q", run_key="r2", queue="accept")
    .add(Kind.PUT_REFUSED, "q", run_key="r2"),
    "held through a move": Trace()
    .put()
    .claim("a", 1)
    .step("a", 2, released=False)
    .step("a", 3, "running->accept")
    .left(3, "accept"),
    "taken over from a dead holder": Trace()
    .put()
    .claim("a", 1)
    .claim("b", 2)
    .step("b", 3)
    .left(3, "running"),
    "attempts grow": retried(1, 2),
    "attempt again after a kill": killed_at_work(1, 1),
    "taken by force": Trace()
    .put()
    .claim("a", 1)
    .claim("op", 2, extra={"forced": True})
    .step("a", 2, acked=False)
    .add(Kind.LOST, "a", version=1, extra={"same_session": True})
    .step("op", 3)
    .left(3, "running"),
    "due": Trace().put(due=500).claim("a", 1, due=500).start("a", 1, 460).left(1, "accept", due=500),
    "stopped before it is due": Trace()
    .put(due=500)
    .claim("a", 1, due=500)
    .start("a", 1, 0, extra={"stopped": True})
    .left(1, "accept", due=500),
    "spoilt": spoilt(Kind.CORRUPTED),
    "transition reported with its dead letter": Trace()
    .put()
    .claim("a", 1)
    .step("a", 2, "accept->dead", nonce="n")
    .add(Kind.DEAD, "a", version=2, nonce="n", queue="accept", to_queue="dead")
    .left(2, "dead", nonce="n"),
}

BAD = {
    "lost": (Invariant.LOST, Trace().put()),
    "lost though its removal was refused": (
        Invariant.LOST,
        Trace().put().claim("a", 1).remove("a", 1, acked=False).add(Kind.STEP_REFUSED, "a", version=1),
    ),
    "lost after an unknown removal that was overtaken": (
        Invariant.LOST,
        Trace().put().claim("a", 1).remove("a", 1, acked=False).claim("b", 2),
    ),
    "unreadable without a fault": (Invariant.LOST, put_and_moved()),
    "another item has its slot": (
        Invariant.LOST,
        Trace().put().put("r2", acked=False).left(0, "accept", key="r2"),
    ),
    "never put": (Invariant.UNEXPECTED, Trace().left(0, "accept")),
    "a token without an item": (Invariant.UNEXPECTED, Trace()),
    "put refused and there": (
        Invariant.UNEXPECTED,
        Trace().put(acked=False).add(Kind.PUT_REFUSED, "p").left(0, "accept"),
    ),
    "removed and there": (Invariant.UNEXPECTED, removed().left(1, "accept")),
    "in two queues": (Invariant.NOT_IN_ONE_QUEUE, put_and_moved()),
    "in no queue": (Invariant.NOT_IN_ONE_QUEUE, put_and_moved()),
    "in another queue than its record": (Invariant.NOT_IN_ONE_QUEUE, put_and_moved()),
    "a token without a record": (Invariant.NOT_IN_ONE_QUEUE, removed()),
    "one version twice": (
        Invariant.STALE_FENCE,
        Trace().put().claim("a", 1).claim("b", 2).step("a", 2).left(2, "running"),
    ),
    "a step that skips versions": (
        Invariant.STALE_FENCE,
        Trace().put().claim("a", 1).step("a", 4).left(4, "running"),
    ),
    "a step after it was let go": (
        Invariant.STALE_FENCE,
        Trace().put().claim("a", 1).step("a", 2).step("a", 3, "running->accept").left(3, "accept"),
    ),
    "a step with the claim of a killed process": (
        Invariant.STALE_FENCE,
        Trace()
        .put()
        .claim("a", 1)
        .add(Kind.STEP_ACKED, "a", 1, version=2, queue="accept", to_queue="running", pool=POOL, released=True)
        .left(2, "running"),
    ),
    "a version that goes backwards": (
        Invariant.STALE_FENCE,
        Trace().put().claim("a", 1).claim("b", 3).step("a", 2, "accept->accept").left(3, "accept"),
    ),
    "a record behind what was accepted": (
        Invariant.STALE_FENCE,
        Trace().put().claim("a", 1).step("a", 2, "accept->accept").left(1, "accept"),
    ),
    "a record that another wrote": (
        Invariant.STALE_FENCE,
        Trace().put().claim("a", 1, nonce="mine").left(1, "accept", nonce="other"),
    ),
    "a record where no step brought it": (
        Invariant.STALE_FENCE,
        Trace().put().claim("a", 1).left(4, "running"),
    ),
    "a change after the removal": (Invariant.STALE_FENCE, removed().claim("b", 2)),
    "removed twice": (Invariant.STALE_FENCE, removed().remove("a", 1)),
    "a claim of what has moved on": (
        Invariant.STALE_CLAIM,
        Trace().put().claim("a", 1).step("a", 2).claim("b", 3).left(3, "accept"),
    ),
    "a claim of what was delayed": (
        Invariant.STALE_CLAIM,
        Trace().put().claim("a", 1).step("a", 2, "accept->accept", due=900).claim("b", 3).left(3, "accept"),
    ),
    "a claim where no unknown step led": (
        Invariant.STALE_CLAIM,
        Trace().put().claim("a", 1).step("a", 2, acked=False).claim("b", 3, "finish").left(3, "finish"),
    ),
    "a step after another's claim": (
        Invariant.OVERLAP,
        Trace().put().claim("a", 1).claim("b", 2).step("a", 3).left(3, "running"),
    ),
    "a removal after another's claim": (
        Invariant.OVERLAP,
        Trace().put().claim("a", 1).claim("b", 2).remove("a", 2),
    ),
    "a claim while the holder's session lives": (
        Invariant.OVERLAP,
        Trace()
        .put()
        .claim("a", 1)
        .claim("b", 2)
        .step("a", 2, acked=False)
        .add(Kind.LOST, "a", version=1, extra={"same_session": True})
        .left(2, "accept"),
    ),
    "a way that is none": (
        Invariant.TRANSITION,
        Trace().put().claim("a", 1).step("a", 2, "accept->finish").left(2, "finish"),
    ),
    "early": (
        Invariant.EARLY,
        Trace().put(due=500).claim("a", 1, due=500).start("a", 1, 440).left(1, "accept", due=500),
    ),
    "beyond the limit": (Invariant.ATTEMPTS, retried(3, 4)),
    "attempts that stay": (Invariant.ATTEMPTS, retried(2, 2)),
    "attempts that fall after a kill": (Invariant.ATTEMPTS, killed_at_work(2, 1)),
    "a lock": (Invariant.LEFT_LOCK, put_and_moved()),
    "two puts acknowledged": (Invariant.PUT_TWICE, Trace().put().put("r2").left(0, "accept", key="r2")),
    "one put acknowledged twice": (Invariant.PUT_TWICE, Trace().put().put().left(0, "accept")),
    "put again before its removal": (
        Invariant.PUT_TWICE,
        Trace().put().put("r2").claim("a", 1).remove("a", 1).left(0, "accept", key="r2"),
    ),
}
BAD["unreadable without a fault"][1].records["i"] = Record(2, readable=False)
BAD["a token without an item"][1].tokens.append(Token("accept", POOL, "foreign"))
BAD["in two queues"][1].tokens.append(Token("accept", POOL, "i", 0))
BAD["in no queue"][1].tokens.clear()
BAD["in another queue than its record"][1].tokens[:] = [Token("accept", POOL, "i", 0)]
BAD["a token without a record"][1].tokens.append(Token("accept", POOL, "i", 0))
BAD["a lock"][1].locks.append("p/i")


@pytest.mark.parametrize("trace", GOOD.values(), ids=GOOD)
def test_a_good_history_violates_nothing(trace: Trace) -> None:
    report = judge(trace)
    assert report.ok, str(report)


@pytest.mark.parametrize(("invariant", "trace"), BAD.values(), ids=BAD)
def test_a_bad_history_violates_this_and_nothing_else(invariant: Invariant, trace: Trace) -> None:
    report = judge(trace)
    assert report.violated == {invariant}, str(report)


def test_every_invariant_has_a_history_that_violates_it() -> None:
    assert {invariant for invariant, _ in BAD.values()} == set(Invariant)


def test_an_early_start_is_found_though_the_actors_clock_is_wrong() -> None:
    trace = Trace().put(due=500).claim("a", 1, due=500).start("a", 1, 600).left(1, "accept", due=500)
    assert judge(trace).ok
    assert judge(trace, replace(RULES, ensemble_offset_ms=0)).violated == {Invariant.EARLY}
    assert judge(trace, replace(RULES, ensemble_offset_ms=500)).ok


def test_a_removal_reported_by_a_client_that_only_found_the_item_gone_can_be_allowed() -> None:
    trace = Trace().put().claim("a", 1).claim("b", 2).remove("b", 2)
    trace.add(Kind.REMOVED_SENT, "a", version=1).add(Kind.REMOVED_ACKED, "a", version=1)
    lenient = replace(RULES, gone_is_removed=True)
    assert judge(trace).violated == {Invariant.STALE_FENCE}
    assert judge(trace, lenient).ok
    assert judge(removed().claim("b", 2), lenient).violated == {Invariant.STALE_FENCE}


def test_the_report_is_a_table_and_json() -> None:
    bad, good = judge(Trace().put()), judge(put_and_moved())
    document = json.loads(merge([bad, good]).to_json())
    assert not document["ok"]
    assert document["counts"]["I1"] == 1
    assert document["counts"]["I10"] == 0
    assert document["seen"]["put_acked"] == 2
    assert document["violations"][0]["id"] == "i"
    lines = str(bad).splitlines()
    assert lines[1].split()[:2] == ["I1", "1"]
    assert lines[-1] == "I1 i (r): it was put and never removed, and has no record"
