"""Requests without an answer: neither outcome is a violation."""

import pytest

from tests.chaos.events import Kind
from tests.chaos.trace import Trace, judge, spoilt

UNKNOWN = {
    "put, not there": Trace().put(acked=False),
    "put, there": Trace().put(acked=False).left(0, "accept"),
    "put failed, there": Trace().put(acked=False).add(Kind.PUT_FAILED, "p").left(0, "accept"),
    "put, refused when sent again": Trace()
    .put(acked=False)
    .put(acked=False)
    .add(Kind.PUT_REFUSED, "p")
    .left(0, "accept"),
    "put, claimed": Trace().put(acked=False).claim("a", 1).step("a", 2).left(2, "running"),
    "claim": Trace().put().claim("b", 2).step("b", 3).left(3, "running"),
    "step, not done": Trace().put().claim("a", 1).step("a", 2, acked=False).left(1, "accept"),
    "step, done": Trace().put().claim("a", 1).step("a", 2, acked=False).left(2, "running"),
    "step, done and claimed from its target": Trace()
    .put()
    .claim("a", 1)
    .step("a", 2, acked=False)
    .claim("b", 3, "running")
    .left(3, "running"),
    "step, not done and claimed again": Trace()
    .put()
    .claim("a", 1)
    .step("a", 2, acked=False)
    .claim("b", 2)
    .left(2, "accept"),
    "own step taken for lost": Trace()
    .put()
    .claim("a", 1)
    .step("a", 2, acked=False)
    .claim("b", 3, "running")
    .add(Kind.LOST, "a", version=1, extra={"same_session": True})
    .left(3, "running"),
    "removal, done": Trace().put().claim("a", 1).remove("a", 1, acked=False),
    "removal, not done": Trace().put().claim("a", 1).remove("a", 1, acked=False).left(1, "accept"),
    "removal, done, and put again": Trace()
    .put()
    .claim("a", 1)
    .remove("a", 1, acked=False)
    .put("r2")
    .left(0, "accept", key="r2"),
    "spoilt": spoilt(Kind.CORRUPT_SENT),
    "let go without a version": Trace()
    .put()
    .claim("a", 1)
    .claim("b", 2)
    .add(Kind.LOST, "a", version=1, extra={"same_session": True})
    .left(2, "accept"),
}


@pytest.mark.parametrize("trace", UNKNOWN.values(), ids=UNKNOWN)
def test_a_request_of_unknown_outcome_violates_nothing(trace: Trace) -> None:
    report = judge(trace)
    assert report.ok, str(report)
