"""`orchestrator worker drain`."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Self

import typer
from rich.live import Live
from rich.text import Text

from orchestrator.admin.drains import DrainProgress, DrainState
from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.follow import LONGEST_OUTAGE_SECONDS
from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.options import Quiet, Verbose
from orchestrator.cli.output import duration, stderr_console
from orchestrator.client.client import Client
from orchestrator.logs.visible import visible
from orchestrator.model.errors import DefinitionError
from queues import QueueError

_LOOK_SECONDS = 0.5
_GONE_SECONDS = 15.0  # a worker that only loses its session announces itself again within this time
_NAMED = 5  # jobs in a line
_EXAMINED = 20  # jobs per look that are read, to find those that never end


def drain(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The worker, or its host if one worker runs there.")
    ],
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Return at once, not at the end of the worker.")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Let a worker that drains take jobs again.")
    ] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Let a worker take nothing more, and end when its drivers have ended.

    The command may run on any host, and waits until the worker has ended. Ctrl-C ends only the wait: the
    worker drains on. Exit with 1 when the worker ends before its drivers, or another operator cancels the
    drain. Streams do not end by themselves: `job kill --graceful` ends them after their micro-batch.

    Example: orchestrator worker drain node-3-4711-5be32a
    """
    if cancel and no_wait:
        raise DefinitionError("--cancel does not wait: leave out --no-wait")
    with connected(start_own=False) as (client, _):
        worker = client.drains.find(name)
        console = stderr_console()
        console.quiet = quiet
        if cancel:
            client.drains.withdraw(worker)
            console.print(f"worker {worker} takes jobs again", markup=False)
            return
        is_new = client.drains.request(worker)
        words = "is asked to drain" if is_new else "is already asked to drain"
        console.print(f"worker {worker} {words}", markup=False)
        if not no_wait:
            _wait(_Drain(client, worker, quiet=quiet))


def _wait(drain: "_Drain") -> None:
    interrupt = Interrupt.install()
    try:
        with interrupt.breaking(), drain:  # a look may wait for ZooKeeper
            while (ended := drain.look()) is None:
                interrupt.wait(_LOOK_SECONDS)
    except KeyboardInterrupt:
        drain.say(
            f"the worker drains on; `orchestrator worker drain {drain.worker}` waits again, --cancel ends it"
        )
        raise typer.Exit(interrupt.exit_code) from None
    words = {
        DrainState.DRAINED: f"worker {drain.worker} has drained and ended after {drain.elapsed}",
        DrainState.WITHDRAWN: f"the drain of worker {drain.worker} was cancelled",
        DrainState.GONE: f"worker {drain.worker} is gone before its drivers have ended: "
        "other workers, and the next one on its host, adopt them",
    }
    drain.say(words[ended])
    if ended is not DrainState.DRAINED:
        raise typer.Exit(Exit.FAILED)


class _Drain:
    """Shows the progress of one drain: one line that changes on a terminal, a line per change on a pipe."""

    def __init__(self, client: Client, worker: str, *, quiet: bool) -> None:
        self.worker = worker
        self._client = client
        self._console = stderr_console()
        self._console.quiet = quiet
        self._start = time.monotonic()
        self._gone_since: float | None = None
        self._answered = self._start  # the last time
        self._words = "waits for the worker"
        self._modes: dict[str, str] = {}  # of the jobs that were examined
        is_live = self._console.is_terminal and not self._console.is_dumb_terminal and not quiet
        self._live = Live(console=self._console, get_renderable=self._line) if is_live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._words = ""
            self._live.transient = True
            self._live.stop()

    @property
    def elapsed(self) -> str:
        """The time since the request."""
        return duration(time.monotonic() - self._start)

    def say(self, words: str) -> None:
        """Show a message that stays."""
        self._console.print(words, markup=False)

    def look(self) -> DrainState | None:
        """Show what is left; returns the final state of the drain.

        Raises the errors of reads after an outage of ten minutes.
        """
        try:
            now = self._client.drains.progress(self.worker)
            self._answered = time.monotonic()
            if now.state is DrainState.DRAINING:
                self._gone_since = None
                self._show(_left(now))
                self._name_streams(now.jobs)
                return None
        except QueueError as error:  # the connection may come back; the worker does not depend on this client
            if time.monotonic() - self._answered > LONGEST_OUTAGE_SECONDS:
                raise
            self._show(f"ZooKeeper does not answer: {error}")
            return None
        if now.state is not DrainState.GONE:
            return now.state
        self._gone_since = self._gone_since or time.monotonic()
        self._show("the worker is not announced any more")
        return now.state if time.monotonic() - self._gone_since > _GONE_SECONDS else None

    def _show(self, words: str) -> None:
        if words != self._words and self._live is None:
            self.say(f"{time.monotonic() - self._start:6.1f} s  {words}")
        self._words = words

    def _line(self) -> Text:
        shown = f"{self.elapsed:>12}  {visible(self._words)}" if self._words else ""
        return Text(shown, no_wrap=True, overflow="ellipsis")

    def _name_streams(self, jobs: Sequence[str]) -> None:
        """Name each job that does not end by itself, once."""
        for job_id in [each for each in jobs if each not in self._modes][:_EXAMINED]:
            view: Any = None
            with suppress(QueueError):  # it has just ended
                view = self._client.get(job_id)
            self._modes[job_id] = view.mode if view is not None else ""
            if self._modes[job_id] == "streaming":
                self.say(
                    f"{job_id} is a stream and never ends by itself: "
                    f"`orchestrator job kill --graceful {job_id}` ends it after its micro-batch"
                )


def _left(now: DrainProgress) -> str:
    if not now.follows:
        return "waits for the worker to see the request"
    named = ", ".join(now.jobs[:_NAMED])
    more = (
        f" and {now.left - _NAMED:,} more"
        if now.left > len(now.jobs[:_NAMED]) and len(now.jobs) > _NAMED
        else ""
    )
    count = "no job" if not now.left else f"{now.left:,} job{'' if now.left == 1 else 's'}"
    return f"{count} left" + (f": {named}{more}" if named else "")
