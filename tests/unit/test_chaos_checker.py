"""Each invariant: a history that keeps it and one that violates it."""

import json
from dataclasses import replace

import pytest

from tests.chaos.events import Kind
from tests.chaos.report import Invariant, merge
from tests.chaos.snapshot import Record, Token
from tests.chaos.story import POOL, RULES, Story, judge, spoilt


def put_and_moved() -> Story:
    return Story().put().claim("a", 1).step("a", 2).left(2, "running")


def removed() -> Story:
    return Story().put().claim("a", 1).remove("a", 1)


def retried(first: int, second: int) -> Story:
    story = Story().put().claim("a", 1).start("a", 1, attempt=first).step("a", 2, "accept->accept")
    return story.claim("b", 3).start("b", 3, attempt=second).step("b", 4).left(4, "running")


def killed_at_work(first: int, second: int) -> Story:
    story = Story().put().claim("a", 1).start("a", 1, attempt=first).step("a", 2, acked=False)
    return story.claim("b", 2).start("b", 2, attempt=second).step("b", 3).left(3, "running")


GOOD = {
    "moved": put_and_moved(),
    "removed": removed(),
    "put again after its removal": removed().put("r2").left(0, "accept", key="r2"),
    "put refused": put_and_moved()
    .tell(Kind.PUT_SENT, "q", run_key="r2", queue="accept")
    .tell(Kind.PUT_REFUSED, "q", run_key="r2"),
    "held through a move": Story()
    .put()
    .claim("a", 1)
    .step("a", 2, released=False)
    .step("a", 3, "running->accept")
    .left(3, "accept"),
    "taken over from a dead holder": Story()
    .put()
    .claim("a", 1)
    .claim("b", 2)
    .step("b", 3)
    .left(3, "running"),
    "attempts grow": retried(1, 2),
    "attempt again after a kill": killed_at_work(1, 1),
    "taken by force": Story()
    .put()
    .claim("a", 1)
    .claim("op", 2, extra={"forced": True})
    .step("a", 2, acked=False)
    .tell(Kind.LOST, "a", version=1, extra={"same_session": True})
    .step("op", 3)
    .left(3, "running"),
    "due": Story().put(due=500).claim("a", 1, due=500).start("a", 1, 460).left(1, "accept", due=500),
    "stopped before it is due": Story()
    .put(due=500)
    .claim("a", 1, due=500)
    .start("a", 1, 0, extra={"stopped": True})
    .left(1, "accept", due=500),
    "spoilt": spoilt(Kind.CORRUPTED),
    "transition reported with its dead letter": Story()
    .put()
    .claim("a", 1)
    .step("a", 2, "accept->dead", nonce="n")
    .tell(Kind.DEAD, "a", version=2, nonce="n", queue="accept", to_queue="dead")
    .left(2, "dead", nonce="n"),
}

BAD = {
    "lost": (Invariant.LOST, Story().put()),
    "lost though its removal was refused": (
        Invariant.LOST,
        Story().put().claim("a", 1).remove("a", 1, acked=False).tell(Kind.STEP_REFUSED, "a", version=1),
    ),
    "lost after an unknown removal that was overtaken": (
        Invariant.LOST,
        Story().put().claim("a", 1).remove("a", 1, acked=False).claim("b", 2),
    ),
    "unreadable without a fault": (Invariant.LOST, put_and_moved()),
    "another item has its slot": (
        Invariant.LOST,
        Story().put().put("r2", acked=False).left(0, "accept", key="r2"),
    ),
    "never put": (Invariant.UNEXPECTED, Story().left(0, "accept")),
    "a token without an item": (Invariant.UNEXPECTED, Story()),
    "put refused and there": (
        Invariant.UNEXPECTED,
        Story().put(acked=False).tell(Kind.PUT_REFUSED, "p").left(0, "accept"),
    ),
    "removed and there": (Invariant.UNEXPECTED, removed().left(1, "accept")),
    "in two queues": (Invariant.NOT_IN_ONE_QUEUE, put_and_moved()),
    "in no queue": (Invariant.NOT_IN_ONE_QUEUE, put_and_moved()),
    "in another queue than its record": (Invariant.NOT_IN_ONE_QUEUE, put_and_moved()),
    "a token without a record": (Invariant.NOT_IN_ONE_QUEUE, removed()),
    "one version twice": (
        Invariant.STALE_FENCE,
        Story().put().claim("a", 1).claim("b", 2).step("a", 2).left(2, "running"),
    ),
    "a step that skips versions": (
        Invariant.STALE_FENCE,
        Story().put().claim("a", 1).step("a", 4).left(4, "running"),
    ),
    "a step after it was let go": (
        Invariant.STALE_FENCE,
        Story().put().claim("a", 1).step("a", 2).step("a", 3, "running->accept").left(3, "accept"),
    ),
    "a step with the claim of a killed process": (
        Invariant.STALE_FENCE,
        Story()
        .put()
        .claim("a", 1)
        .tell(
            Kind.STEP_ACKED, "a", 1, version=2, queue="accept", to_queue="running", pool=POOL, released=True
        )
        .left(2, "running"),
    ),
    "a version that goes backwards": (
        Invariant.STALE_FENCE,
        Story().put().claim("a", 1).claim("b", 3).step("a", 2, "accept->accept").left(3, "accept"),
    ),
    "a record behind what was accepted": (
        Invariant.STALE_FENCE,
        Story().put().claim("a", 1).step("a", 2, "accept->accept").left(1, "accept"),
    ),
    "a record that another wrote": (
        Invariant.STALE_FENCE,
        Story().put().claim("a", 1, nonce="mine").left(1, "accept", nonce="other"),
    ),
    "a record where no step brought it": (
        Invariant.STALE_FENCE,
        Story().put().claim("a", 1).left(4, "running"),
    ),
    "a change after the removal": (Invariant.STALE_FENCE, removed().claim("b", 2)),
    "removed twice": (Invariant.STALE_FENCE, removed().remove("a", 1)),
    "a claim of what has moved on": (
        Invariant.STALE_CLAIM,
        Story().put().claim("a", 1).step("a", 2).claim("b", 3).left(3, "accept"),
    ),
    "a claim of what was delayed": (
        Invariant.STALE_CLAIM,
        Story().put().claim("a", 1).step("a", 2, "accept->accept", due=900).claim("b", 3).left(3, "accept"),
    ),
    "a claim where no unknown step led": (
        Invariant.STALE_CLAIM,
        Story().put().claim("a", 1).step("a", 2, acked=False).claim("b", 3, "finish").left(3, "finish"),
    ),
    "a step after another's claim": (
        Invariant.OVERLAP,
        Story().put().claim("a", 1).claim("b", 2).step("a", 3).left(3, "running"),
    ),
    "a removal after another's claim": (
        Invariant.OVERLAP,
        Story().put().claim("a", 1).claim("b", 2).remove("a", 2),
    ),
    "a claim while the holder's session lives": (
        Invariant.OVERLAP,
        Story()
        .put()
        .claim("a", 1)
        .claim("b", 2)
        .step("a", 2, acked=False)
        .tell(Kind.LOST, "a", version=1, extra={"same_session": True})
        .left(2, "accept"),
    ),
    "a way that is none": (
        Invariant.TRANSITION,
        Story().put().claim("a", 1).step("a", 2, "accept->finish").left(2, "finish"),
    ),
    "early": (
        Invariant.EARLY,
        Story().put(due=500).claim("a", 1, due=500).start("a", 1, 440).left(1, "accept", due=500),
    ),
    "beyond the limit": (Invariant.ATTEMPTS, retried(3, 4)),
    "attempts that stay": (Invariant.ATTEMPTS, retried(2, 2)),
    "attempts that fall after a kill": (Invariant.ATTEMPTS, killed_at_work(2, 1)),
    "a lock": (Invariant.LEFT_LOCK, put_and_moved()),
    "two puts acknowledged": (Invariant.PUT_TWICE, Story().put().put("r2").left(0, "accept", key="r2")),
    "one put acknowledged twice": (Invariant.PUT_TWICE, Story().put().put().left(0, "accept")),
    "put again before its removal": (
        Invariant.PUT_TWICE,
        Story().put().put("r2").claim("a", 1).remove("a", 1).left(0, "accept", key="r2"),
    ),
}
BAD["unreadable without a fault"][1].records["i"] = Record(2, readable=False)
BAD["a token without an item"][1].tokens.append(Token("accept", POOL, "foreign"))
BAD["in two queues"][1].tokens.append(Token("accept", POOL, "i", 0))
BAD["in no queue"][1].tokens.clear()
BAD["in another queue than its record"][1].tokens[:] = [Token("accept", POOL, "i", 0)]
BAD["a token without a record"][1].tokens.append(Token("accept", POOL, "i", 0))
BAD["a lock"][1].locks.append("p/i")


@pytest.mark.parametrize("story", GOOD.values(), ids=GOOD)
def test_a_good_history_violates_nothing(story: Story) -> None:
    report = judge(story)
    assert report.ok, str(report)


@pytest.mark.parametrize(("invariant", "story"), BAD.values(), ids=BAD)
def test_a_bad_history_violates_this_and_nothing_else(invariant: Invariant, story: Story) -> None:
    report = judge(story)
    assert report.violated == {invariant}, str(report)


def test_every_invariant_has_a_history_that_violates_it() -> None:
    assert {invariant for invariant, _ in BAD.values()} == set(Invariant)


def test_an_early_start_is_found_though_the_actors_clock_is_wrong() -> None:
    story = Story().put(due=500).claim("a", 1, due=500).start("a", 1, 600).left(1, "accept", due=500)
    assert judge(story).ok
    assert judge(story, replace(RULES, ensemble_offset_ms=0)).violated == {Invariant.EARLY}
    assert judge(story, replace(RULES, ensemble_offset_ms=500)).ok


def test_a_removal_reported_by_a_client_that_only_found_the_item_gone_can_be_allowed() -> None:
    story = Story().put().claim("a", 1).claim("b", 2).remove("b", 2)
    story.tell(Kind.REMOVED_SENT, "a", version=1).tell(Kind.REMOVED_ACKED, "a", version=1)
    lenient = replace(RULES, gone_is_removed=True)
    assert judge(story).violated == {Invariant.STALE_FENCE}
    assert judge(story, lenient).ok
    assert judge(removed().claim("b", 2), lenient).violated == {Invariant.STALE_FENCE}


def test_the_report_is_a_table_and_json() -> None:
    bad, good = judge(Story().put()), judge(put_and_moved())
    document = json.loads(merge([bad, good]).to_json())
    assert not document["ok"]
    assert document["counts"]["I1"] == 1
    assert document["counts"]["I10"] == 0
    assert document["seen"]["put_acked"] == 2
    assert document["violations"][0]["id"] == "i"
    lines = str(bad).splitlines()
    assert lines[1].split()[:2] == ["I1", "1"]
    assert lines[-1] == "I1 i (r): it was put and never removed, and has no record"
