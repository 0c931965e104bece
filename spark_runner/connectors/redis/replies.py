"""The replies of one server to the commands of a reader, one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.patience import Patience
from spark_runner.connectors.redis.client import LOST, REFUSED, Servers, where


class Replies:
    """One connection to a server, which a task waits for at its begin."""

    def __init__(self, options: Mapping[str, Any], name: str) -> None:
        self._options, self._name = options, name
        self._servers, self._patience = Servers(options), Patience(options["retry_timeout"])
        self._connection: Any = None

    def to(self, *command: Any) -> Any:
        """The reply to one command; raises Unreachable, and other errors of redis-py."""
        (reply,) = self._to_all([command])
        return reply

    def to_each(self, command: tuple[str, ...], keys: Sequence[bytes]) -> Iterator[Any]:
        """The replies to a command for each key, in one round trip; raises likewise."""
        return self._to_all([(*command, key) for key in keys])

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.disconnect()
        self._servers.close()

    def _to_all(self, commands: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        try:
            self._connect()
            self._connection.send_packed_command(self._connection.pack_commands(commands))
            for _ in commands:
                yield self._connection.read_response()
        except REFUSED:  # of which redis-py has one as a lost connection
            raise
        except LOST as error:
            # A restarted server, or another one, has its keys in another order: the task begins anew.
            raise Unreachable(f"{where(self._options)} does not answer: {error}") from error

    def _connect(self) -> None:
        while self._connection is None:
            try:
                self._connection = self._servers.client(self._name).connection_pool.get_connection()
            except REFUSED:  # likewise
                raise
            except LOST:
                self._servers.close()
                if not self._patience.wait():
                    raise
