"""Support for tests of a push."""

from spark_runner.push.retry import RetryPolicy
from spark_runner.push.settings import PushSettings

WAIT_S = 30
QUICK = RetryPolicy(attempts=4, first_pause=0.001, max_pause=0.01)


def settings(**given: object) -> PushSettings:
    """Settings with short pauses, and batches that leave when they are full."""
    return PushSettings(**{"batch_seconds": 60.0, "retry": QUICK, **given})  # type: ignore[arg-type]  # a test gives what it names
