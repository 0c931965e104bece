"""Follow a job to its end on the screen: `run`, `job wait` and `job submit --wait`."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import typer

from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.live import Display, display
from orchestrator.cli.output import stderr_console
from orchestrator.client.client import Client
from orchestrator.client.progress import describe_activity
from orchestrator.model.errors import WaitTimeout
from orchestrator.model.job_view import JobView
from orchestrator.model.waiting import Reason
from queues import Unreachable

_LOOK_SECONDS = 2.0  # the interval at which drivers report progress; a watch reports changes of the record
_LOOK_SECONDS_QUIET = 5.0  # the longest time for which a lost watch hides the end
LONGEST_OUTAGE_SECONDS = 600.0  # a script does not wait for ever for a ZooKeeper that was removed


def follow(
    client: Client,
    job_id: str,
    screen: Display,
    *,
    timeout: float | None = None,
    look_seconds: float = _LOOK_SECONDS,
    has_own_worker: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Iterator[JobView]:
    """Show a job until it has ended, and yield it after each look, the ended one as the last.

    A lost connection is shown, and the wait goes on when it is back. Raises WaitTimeout, ItemNotFound, and
    Unreachable after an outage of ten minutes. With `has_own_worker`, this process runs the job, and no other
    worker is missed. `check` is called before each look, and may raise.
    """
    monitor, wake = client.monitor(job_id), threading.Event()
    monitor.on_outage(screen.show_outage)
    deadline = None if timeout is None else time.monotonic() + timeout
    state, activity = "unknown", "ZooKeeper has not answered"

    def pause() -> float:
        return look_seconds if deadline is None else min(look_seconds, max(0.0, deadline - time.monotonic()))

    while True:
        check()
        is_given_up = monitor.seconds_without_contact() > LONGEST_OUTAGE_SECONDS
        try:
            now = monitor.look(wake.set) if is_given_up or monitor.wait_connected(pause()) else None
        except Unreachable:
            if is_given_up:
                raise
            now = None
        if now is None:
            screen.show_outage(monitor.seconds_without_contact())
        else:
            if has_own_worker and now.waiting is not None and now.waiting.reason == Reason.NO_WORKER:
                now = replace(now, waiting=None)
            screen.show(now)
            yield now.job
            if now.job.is_final:
                return
            state = str(now.job.status)
            activity = describe_activity(now.job, now.progress, now.waiting)
        if timeout is not None and not pause():
            why = f": {activity}" if activity else ""
            raise WaitTimeout(f"job {job_id!r} is still {state} after {timeout:g} s{why}")
        wake.wait(pause())
        wake.clear()


def wait_for_end(client: Client, job_id: str, *, quiet: bool, timeout: float | None = None) -> JobView:
    """Show a job until it has ended; Ctrl-C and TERM end the wait alone, and the job goes on.

    Raises what `follow` raises.
    """
    interrupt = Interrupt.install()
    seconds = _LOOK_SECONDS_QUIET if quiet else _LOOK_SECONDS
    try:
        with interrupt.breaking(), display(quiet=quiet) as screen:
            looks = follow(client, job_id, screen, timeout=timeout, look_seconds=seconds)
            return deque(looks, maxlen=1).pop()
    except KeyboardInterrupt:
        if not quiet:
            console = stderr_console()
            console.print(f"job {job_id} goes on")
            console.print(f"  wait again:  orchestrator job wait {job_id}")
            console.print(f"  stop it:     orchestrator job kill {job_id}")
        raise typer.Exit(interrupt.exit_code) from None
