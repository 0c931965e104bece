"""Further attempts of requests of the HTTP connector and what their time counts."""

import time
from dataclasses import dataclass, field

import pytest

from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.http import client
from tests.http_support import ROWS, in_turn, sender
from tests.servers.web import Reply, web_server


@dataclass
class Clock:
    """The clock of a client, which is ahead by the waits that it does not make."""

    waits: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return time.monotonic() + sum(self.waits)

    def sleep(self, seconds: float) -> None:
        if seconds:
            self.waits.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(client, "time", made)
    return made


@pytest.mark.usefixtures("clock")
def test_waits_for_the_rate_limit_are_not_part_of_the_retry_timeout() -> None:
    with web_server(in_turn(Reply(), Reply(503), Reply(drop=True), Reply())) as server:
        with sender(f"{server.url}/items", tasks="8", rate_limit="2", retry_timeout="3") as found:
            assert found.write(ROWS) == []
        keys = [each.headers["idempotency-key"] for each in server.received]
        assert keys == ["key-0", "key-1", "key-1", "key-1", "key-2", "key-3"]


def test_a_wait_that_a_server_asks_for_and_one_for_the_rate_limit_pass_together(clock: Clock) -> None:
    for asked, most in ((3, 4), (7, 7)):
        clock.waits.clear()
        replies = Reply(429, headers={"Retry-After": str(asked)}), Reply()
        with web_server(in_turn(*replies)) as server:
            with sender(f"{server.url}/items", tasks="8", rate_limit="2") as found:
                assert found.write(ROWS[:1]) == []
            assert len(server.received) == 2
        assert asked - 1 < sum(clock.waits) <= most + 0.01


@pytest.mark.usefixtures("clock")
def test_attempts_of_a_busy_server_end_though_the_rate_limit_is_low() -> None:
    with (
        web_server(lambda _: Reply(503)) as server,
        sender(f"{server.url}/items", tasks="8", rate_limit="2", retry_timeout="3") as found,
        pytest.raises(Unreachable, match="answers 503"),
    ):
        found.write(ROWS)
    assert 3 < len(server.received) < 9
