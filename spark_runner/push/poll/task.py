"""Serves the rows of one task of Spark to clients, within limits that its driver sets while it runs."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.client import ControlClient, Endpoint
from spark_runner.push.errors import PushError
from spark_runner.push.poll.buffer import PollBuffer
from spark_runner.push.poll.server import PollServer
from spark_runner.push.poll.settings import PollSettings
from spark_runner.push.settings import Limits
from spark_runner.push.task import Follower, this_task

_DISMISS_S = 0.9  # a driver that ends waits for a second


class CannotListen(PushError):
    """The port is taken, or the host is none of this machine."""


@dataclass(frozen=True, slots=True)
class PollTask:
    """What the task that serves rows needs to know: it travels to the task."""

    settings: PollSettings
    endpoint: Endpoint

    def run(self, portions: Iterable[Sequence[bytes]], task: TaskId | None = None) -> int:
        """Serve all rows, each the text of a JSON value, and return their number once a client has the end.

        `task` is by default the one of Spark in which it runs. Raises PushError, and errors of `portions`.
        """
        buffer = PollBuffer(self.settings.client_timeout)
        server = PollServer(buffer, self.settings)
        try:
            address = server.start()
        except OSError as error:
            where = f"{self.settings.host}:{self.settings.port}"
            raise CannotListen(f"no client can be served at {where}: {error}") from error

        def dismissed(error: BaseException) -> None:
            buffer.fail(error)
            server.answer_waiting(_DISMISS_S)

        def adjust(limits: Limits) -> None:
            # Its rows are a lane without a name.
            is_suspended = limits.is_suspended or limits.of("").is_paused
            buffer.adjust(replace(limits, is_suspended=is_suspended))

        with closing(server):
            channel = ControlClient(
                self.endpoint,
                task or this_task(),
                report=lambda: {**buffer.report(), "address": address},
                follow=Follower(adjust, lambda: None).follow,  # clients may ask again anyway
                extend=buffer.extend,
                failed=dismissed,
            )
            with closing(channel):
                try:
                    for rows in portions:
                        buffer.put(rows)
                    return buffer.finish()
                except BaseException as error:
                    buffer.fail(error)
                    raise
