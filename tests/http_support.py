"""Senders of the HTTP connector, and rows for them."""

import itertools
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from spark_runner.connectors.http.bodies import Row
from spark_runner.connectors.http.sender import Sender
from spark_runner.connectors.options import to_plan, validate
from spark_runner.connectors.pushed_rows import delivered, settings_of
from spark_runner.connectors.written_rows import Rejected
from spark_runner.push.control.client import Endpoint
from spark_runner.push.control.server import ControlServer
from spark_runner.push.settings import Limits, Order
from spark_runner.push.task import Portion, PushTask
from tests.servers.web import Reply

ROWS = [Row("/items", f'{{"n":{n}}}', f'{{"n":{n}}}', f"key-{n}") for n in range(4)]


def plan(url: str, **options: str) -> dict[str, Any]:
    return to_plan(validate("http", {"url": url, **options}))


class Pushing:
    """Pushes rows, as a task does whose limits its driver sets."""

    def __init__(self, options: dict[str, Any], secrets: tuple[str, ...]) -> None:
        self._options, self._secrets = options, secrets
        self._settings = settings_of(options, Order.NONE, 1, 60.0)

    def write(self, rows: Sequence[Row]) -> list[Rejected]:
        """Send rows; returns those that are refused."""
        limits = Limits(self._options["concurrency"], self._options["rate_limit"])
        self.driver = server = ControlServer(
            limits,
            host="127.0.0.1",
            token="t",  # noqa: S106 - of this server alone
            lease=90.0,
            is_exclusive=False,
        )
        refused = list[Rejected]()
        with closing(Sender(self._options, self._secrets)) as sender:
            task = PushTask(self._settings, Endpoint("127.0.0.1", server.start(), "t", 90.0))
            try:
                for _, found in delivered(
                    task,
                    sender.deliver,
                    [Portion(sender.records(rows, refused))],
                    lambda letter: [(letter.reason, letter.record.value.row)],
                ):
                    refused += found
            finally:
                server.close()
        return refused


@contextmanager
def sender(url: str, **options: str) -> Iterator[Pushing]:
    """What sends rows, one request after the other by default; `secrets` are divided by `|`."""
    secrets = tuple(options.pop("secrets", "").split("|"))
    yield Pushing(plan(url, **{"concurrency": "1", **options}), secrets)


def in_turn(*replies: Reply) -> Any:
    """The replies one after the other, the last one again and again."""
    turns = itertools.chain(replies, itertools.repeat(replies[-1]))
    return lambda _: next(turns)


_DRIPS, _DRIP_S = 2_000, 0.005  # a client without a deadline waits for about 10 s


@contextmanager
def dripping_server(begin: bytes, drip: bytes, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server of one request, which answers `begin`, and then `drip` again and again.

    At the end, the client must have closed the connection.
    """
    has_closed = threading.Event()

    def serve() -> None:
        made, _ = listener.accept()
        with context.wrap_socket(made, server_side=True) if context else made as connection:
            connection.recv(65_536)
            try:
                connection.sendall(begin)
                for _ in range(_DRIPS):
                    connection.sendall(drip)
                    time.sleep(_DRIP_S)
            except OSError:
                has_closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        scheme, host = ("https", "localhost") if context else ("http", "127.0.0.1")
        yield f"{scheme}://{host}:{listener.getsockname()[1]}/items"
        thread.join(60)
        assert has_closed.is_set(), "the client has closed the connection"
