"""Requests without an answer: neither outcome is a violation."""

import pytest

from tests.chaos.events import Kind
from tests.chaos.story import Story, judge, spoilt

UNKNOWN = {
    "put, not there": Story().put(acked=False),
    "put, there": Story().put(acked=False).left(0, "accept"),
    "put failed, there": Story().put(acked=False).tell(Kind.PUT_FAILED, "p").left(0, "accept"),
    "put, refused when sent again": Story()
    .put(acked=False)
    .put(acked=False)
    .tell(Kind.PUT_REFUSED, "p")
    .left(0, "accept"),
    "put, claimed": Story().put(acked=False).claim("a", 1).step("a", 2).left(2, "running"),
    "claim": Story().put().claim("b", 2).step("b", 3).left(3, "running"),
    "step, not done": Story().put().claim("a", 1).step("a", 2, acked=False).left(1, "accept"),
    "step, done": Story().put().claim("a", 1).step("a", 2, acked=False).left(2, "running"),
    "step, done and claimed from its target": Story()
    .put()
    .claim("a", 1)
    .step("a", 2, acked=False)
    .claim("b", 3, "running")
    .left(3, "running"),
    "step, not done and claimed again": Story()
    .put()
    .claim("a", 1)
    .step("a", 2, acked=False)
    .claim("b", 2)
    .left(2, "accept"),
    "own step taken for lost": Story()
    .put()
    .claim("a", 1)
    .step("a", 2, acked=False)
    .claim("b", 3, "running")
    .tell(Kind.LOST, "a", version=1, extra={"same_session": True})
    .left(3, "running"),
    "removal, done": Story().put().claim("a", 1).remove("a", 1, acked=False),
    "removal, not done": Story().put().claim("a", 1).remove("a", 1, acked=False).left(1, "accept"),
    "removal, done, and put again": Story()
    .put()
    .claim("a", 1)
    .remove("a", 1, acked=False)
    .put("r2")
    .left(0, "accept", key="r2"),
    "spoilt": spoilt(Kind.CORRUPT_SENT),
    "let go without a version": Story()
    .put()
    .claim("a", 1)
    .claim("b", 2)
    .tell(Kind.LOST, "a", version=1, extra={"same_session": True})
    .left(2, "accept"),
}


@pytest.mark.parametrize("story", UNKNOWN.values(), ids=UNKNOWN)
def test_a_request_of_unknown_outcome_violates_nothing(story: Story) -> None:
    report = judge(story)
    assert report.ok, str(report)
