"""What follows the results of a request."""

import pytest

from spark_runner.push.batch import Batch, Portion, Priority, Record, State
from spark_runner.push.errors import DeliveryError, Overloaded, Permanent, Refused, Retryable, TimedOut
from spark_runner.push.retry import FollowUp, RetryPolicy, follow_up

POLICY = RetryPolicy(attempts=3, first_pause=1.0, max_pause=8.0)


def batch(records: int, errors: tuple[str, ...] = (), tries: int = 1) -> Batch:
    made = Batch("a", Priority.MEDIUM, created=0.0, tries=tries)
    portion = Portion(records, records, None)
    made.extend([Record(f"r{n}", 1) for n in range(records)], list(range(records)), portion)
    made.errors = dict.fromkeys(range(records), errors) if errors else {}
    return made


def numbers(batches: list[Batch]) -> list[list[int]]:
    return [each.numbers for each in batches]


def test_without_an_error_nothing_follows() -> None:
    assert follow_up(batch(2), None, POLICY, is_ordered=True) == FollowUp()
    assert follow_up(batch(2), {}, POLICY, is_ordered=True) == FollowUp()


def test_an_error_of_some_records_lets_these_alone_come_again_unless_there_is_an_order() -> None:
    results = {1: Retryable("busy")}
    assert numbers(follow_up(batch(4), results, POLICY, is_ordered=False).rest) == [[1]]
    assert numbers(follow_up(batch(4), results, POLICY, is_ordered=True).rest) == [[1, 2, 3]]


def test_a_batch_that_is_refused_is_divided_until_the_record_is_found() -> None:
    follow = follow_up(batch(5), Permanent("no"), POLICY, is_ordered=True)
    assert numbers(follow.rest) == [[0, 1], [2, 3, 4]]
    assert not follow.dead
    (letter,) = follow_up(batch(1), Permanent("no"), POLICY, is_ordered=True).dead
    assert (letter.record.value, letter.number, letter.errors) == ("r0", 0, ("no",))


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (Retryable("503"), True),
        (TimedOut("late"), True),
        (Overloaded("429"), False),
        (Refused("closed"), False),
    ],
)
def test_a_record_is_dead_after_its_last_attempt_if_other_records_would_not_fail(
    error: DeliveryError,
    counts: bool,
) -> None:
    before = ("first", "second")
    follow = follow_up(batch(1, before, tries=3), error, POLICY, is_ordered=False)
    assert [letter.errors for letter in follow.dead] == ([(*before, str(error))] if counts else [])
    assert [each.errors for each in follow.rest] == ([] if counts else [{0: before}])


def test_a_record_for_which_the_target_is_always_overloaded_is_dead_at_last_unless_it_is_for_all() -> None:
    policy, rest, tries = RetryPolicy(busy_attempts=5), batch(1), 0
    for _ in range(50):  # the target takes nothing
        (rest,) = follow_up(rest, Overloaded("429"), policy, is_ordered=False, is_up=False).rest
    while follow := follow_up(rest, Overloaded("429"), policy, is_ordered=False, is_up=True).rest:
        (rest,), tries = follow, tries + 1
    assert tries == 4


def test_some_records_may_be_dead_while_others_come_again() -> None:
    results = {0: Permanent("bad"), 2: Retryable("busy"), 3: Permanent("worse")}
    follow = follow_up(batch(5), results, POLICY, is_ordered=True)
    assert [letter.number for letter in follow.dead] == [0, 3]
    assert numbers(follow.rest) == [[2, 4]]


def test_the_pause_grows_with_each_attempt_has_jitter_and_is_at_least_what_the_target_asks_for() -> None:
    def pauses(tries: int, retry_after: float = 0.0) -> list[float]:
        error = Overloaded("429", retry_after)
        return [follow_up(batch(1, (), tries), error, POLICY, is_ordered=False).pause for _ in range(300)]

    for tries, most in ((1, 1.0), (2, 2.0), (4, 8.0), (50, 8.0)):
        found = pauses(tries)
        assert max(found) <= most
        assert min(found) < most / 4 < 3 * most / 4 < max(found), "full jitter"
    assert min(pauses(1, 5.0)) == 5.0


def test_the_rest_keeps_its_errors_and_a_timeout_is_its_state() -> None:
    (rest,) = follow_up(batch(2, ("one",)), TimedOut("two"), POLICY, is_ordered=False).rest
    assert rest.errors == {0: ("one", "two"), 1: ("one", "two")}
    assert (rest.state, rest.is_closed, rest.tries) == (State.TIMEOUT, True, 1)


def test_errors_of_a_record_are_no_attempts_of_those_behind_it() -> None:
    found = batch(2, tries=9)
    found.errors = {0: ("first", "second")}
    follow = follow_up(found, {0: Permanent("no"), 1: Retryable("busy")}, POLICY, is_ordered=True)
    assert [letter.errors for letter in follow.dead] == [("first", "second", "no")]
    assert [each.errors for each in follow.rest] == [{1: ("busy",)}]


def test_an_error_is_cut_in_a_dead_letter() -> None:
    (letter,) = follow_up(batch(1), Permanent("x" * 10_000), POLICY, is_ordered=False).dead
    assert len(letter.errors[0]) == 500


@pytest.mark.parametrize(
    ("error", "is_up", "is_busy"),
    [
        (Overloaded("429"), True, True),
        (Overloaded("429", retry_after=1.0), True, False),
        (Retryable("500"), True, False),
        (Retryable("500"), False, True),
    ],
)
def test_a_pause_may_end_early_if_the_target_is_at_fault_and_did_not_say_when_to_come_again(
    error: Retryable, is_up: bool, is_busy: bool
) -> None:
    assert follow_up(batch(2), error, POLICY, is_ordered=True, is_up=is_up).is_busy is is_busy
