"""Takes an attempt for its driver, once; shows progress, obeys orders and records the outcome."""

import os
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from spark_runner.driver.progress import SparkMonitor
from spark_runner.driver.push_nodes import PushNodes
from spark_runner.protocol import exit_codes
from spark_runner.protocol.announcement import record_exit_code
from spark_runner.protocol.attempt import VERSION_STARTED, Attempt, AttemptState, outcome_facts
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.log_limit import limit_own_logs
from spark_runner.protocol.redacted import add_secrets, redacted
from spark_runner.protocol.run_plan import RunPlan
from spark_runner.protocol.stop_order import is_graceful
from spark_runner.protocol.zookeeper import (
    AccessDenied,
    Check,
    Conflict,
    Create,
    Delete,
    Operation,
    OutcomeUnknown,
    QueueError,
    Session,
    Set,
    boottime,
    commit,
    encode,
    timestamp,
)
from spark_runner.push.pushes import Pushes
from spark_runner.sql.execution.stream_control import StreamControl

_BEAT_SECONDS = 2.0  # between looks for orders when no watch fires
_AT_ONCE = ("phase", "application_id", "stopping")  # shown without waiting for `_PROGRESS_SECONDS`
_PROGRESS_SECONDS = 2.0  # between writes to ZooKeeper, for human readers; more writes would only be load


class Superseded(SparkRunnerError):
    """The attempt is not this driver's: another driver took it, or it was closed."""


class AttemptHolder:
    """The hold of one driver on one attempt."""

    def __init__(self, session: Session, plan: RunPlan) -> None:
        self._session = session
        self._path = plan.attempt_path
        self._stop_path = plan.stop_path
        self._run_key = plan.run_key
        self._incarnation = plan.incarnation
        self._driver = uuid.uuid4().hex  # this process: a cluster may start a submission twice
        self._lease_seconds = plan.lease_seconds
        add_secrets(plan.secrets)
        self._generation = session.generation
        self._watch: SparkMonitor | None = None
        self.streams = StreamControl(self.notify)
        Pushes.of_job = self.streams.pushes
        self._push_nodes = PushNodes(session, plan, self.streams.pushes, self._commit)
        self._phase = ""
        self._shown: dict[str, Any] = {}
        self._shown_at = 0.0
        self._wake = threading.Event()
        self._ended = threading.Event()  # the outcome is being recorded: orders no longer apply
        self._ending = threading.Lock()  # taken by the first to end the attempt: the program or an order
        self._thread = threading.Thread(target=self._guard, name="attempt-guard", daemon=True)

    # ------------------------------------------------------------------ take and end
    def take(self) -> None:
        """Take the attempt by compare-and-set; raises Superseded when it is taken or closed."""
        try:
            attempt = self._taken()
        except AccessDenied as error:
            message = f"{self._path} is for the driver of another submission: {error}"
            raise Superseded(message) from error
        if attempt.state is not AttemptState.STARTED or not self._is_ours(attempt):
            raise self._superseded(attempt)
        self._thread.start()

    def _taken(self) -> Attempt:
        attempt = self._read()
        if attempt.state is AttemptState.INTENT:
            facts = {
                "incarnation": self._incarnation,
                "driver": self._driver,
                "started": timestamp(),
                "pid": os.getpid(),
            }
            take: list[Operation] = [
                attempt.advance(AttemptState.STARTED, **facts),
                Create(attempt.alive, ephemeral=True),
            ]
            try:
                self._commit(take)
            except Conflict:
                pass  # the reply to this very request may be lost: the node shows that
            except OutcomeUnknown:  # likewise, after ZooKeeper is back; if nothing changed, no driver ran
                back = self._session.wait_connected(self._lease_seconds)
                if not back or self._read().state is AttemptState.INTENT:
                    raise
            attempt = self._read()
        return attempt

    def end(self, outcome: dict[str, Any]) -> None:
        """Record the outcome, waiting for ZooKeeper as long as the lease; raises Superseded.

        If ZooKeeper does not come back, the outcome beside the logs and the exit code replace the record.
        """
        with self._ending:
            self._ended.set()
            state = AttemptState(outcome["state"])
            facts = outcome_facts(outcome)
            deadline = boottime() + self._lease_seconds
            while boottime() < deadline:
                try:
                    attempt = self._read()
                    if attempt.state is AttemptState.STARTED and self._is_ours(attempt):
                        self._push_nodes.keep_positions(is_done=state is AttemptState.SUCCEEDED)
                        self._close_attempt(attempt.advance(state, ended=timestamp(), **facts), attempt.alive)
                        return
                except Conflict:
                    continue  # the reply was lost, or another writer was faster: read again
                except QueueError:
                    time.sleep(_BEAT_SECONDS)  # no contact with ZooKeeper, and no other work is left
                    continue
                if attempt.state is state and self._is_ours(attempt):
                    return
                raise self._superseded(attempt)

    def abandon(self) -> None:
        """Stop showing progress and record nothing: the end of the JVM decides the outcome."""
        with self._ending:
            self._ended.set()
        self._wake.set()

    def _close_attempt(self, outcome: Set, alive: str) -> None:
        # `alive` may be missing: its session was lost, and the next beat would have created it again.
        removal = [Delete(alive)] if self._session.exists(alive) is not None else []
        self._commit([outcome, *removal])

    def _commit(self, operations: Sequence[Operation]) -> None:
        # All paths are below the attempt, which no other job has, not even a later one of the same id. The
        # read before a resend shows that the job is gone.
        commit(self._session, operations, before_again=self._read)

    def _read(self) -> Attempt:
        attempt = Attempt.read(self._session, self._path, self._wake.set)
        if attempt is None or attempt.run_key != self._run_key:
            message = f"{self._path} is gone"
            raise Superseded(message)
        return attempt

    def _is_ours(self, attempt: Attempt) -> bool:
        return attempt.document.get("driver") == self._driver

    def _superseded(self, attempt: Attempt) -> Superseded:
        taken = attempt.incarnation and not self._is_ours(attempt)
        other = f" by another driver, of submission {attempt.incarnation}" if taken else ""
        return Superseded(f"the attempt {attempt.run} is {attempt.state}{other}")

    # ------------------------------------------------------------------ progress
    def report(self, phase: str) -> None:
        """Set the phase, one short line, that the progress shows."""
        self._phase = phase
        self._wake.set()

    def attach_monitor(self, watch: SparkMonitor) -> None:
        """Show what this monitor reports from now on, its application at once."""
        self._watch = watch
        watch.start()
        self._wake.set()

    def notify(self) -> None:
        """Look for orders and show progress soon, because the progress has changed."""
        self._wake.set()

    def finish_watching(self) -> dict[str, Any]:
        """The metrics of the run; empty when Spark never started, or reports nothing."""
        return {} if self._watch is None else self._watch.finish()

    def _show_progress(self) -> None:
        progress: dict[str, Any] = {"phase": self._phase, **self.streams.shown()}
        if self.streams.stopping.is_set():
            progress["stopping"] = True
        if self._watch is not None:
            progress |= self._watch.shown()
        is_urgent = any(progress.get(name) != self._shown.get(name) for name in _AT_ONCE)
        due = time.monotonic() - self._shown_at >= _PROGRESS_SECONDS
        if progress == self._shown or not (due or is_urgent):
            return
        self._commit([Set(f"{self._path}/alive", encode(redacted(progress)), -1)])
        self._shown, self._shown_at = progress, time.monotonic()

    # ------------------------------------------------------------------ obey
    def _guard(self) -> None:
        """Look for orders until the attempt has ended; no error ends the loop earlier."""
        while not self._ended.is_set():
            self._wake.wait(_BEAT_SECONDS)
            self._wake.clear()
            if self._ended.is_set():
                return
            limit_own_logs()
            try:
                self._look()
            except (Conflict, OutcomeUnknown):
                continue  # `alive` was being created or moved: the next beat looks again
            except Superseded as error:
                self._leave(exit_codes.SUPERSEDED, str(error))
            except QueueError as error:
                if not self._ended.is_set():
                    self._say(f"ZooKeeper does not answer: {error}")
            except Exception as error:  # noqa: BLE001 - the loop must survive any error
                self._say(f"looking for orders has failed: {error!r}")

    def _look(self) -> None:
        without_contact = self._session.seconds_without_contact()
        if without_contact > self._lease_seconds:
            self._leave(
                exit_codes.NO_CONTACT,
                f"no contact with ZooKeeper for {without_contact:.0f} s, longer than the lease",
            )
        if without_contact:
            return
        attempt = self._read()
        if attempt.state is not AttemptState.STARTED or not self._is_ours(attempt):
            raise self._superseded(attempt)
        if (order := self._stop_order()) is not None:
            if not is_graceful(order):
                self._obey_stop(attempt)
            self.streams.stopping.set()
        try:
            self._push_nodes.follow_adjustment(self._wake.set)
        except ValueError as error:
            self._say(str(error))
        if self._generation != self._session.generation:
            generation = self._session.generation
            stat = self._session.exists(attempt.alive)
            # A node of this session is there if the reply to an earlier request was lost.
            if stat is None or stat.owner != self._session.id:
                self._commit([Check(self._path, VERSION_STARTED), Create(attempt.alive, ephemeral=True)])
            self._generation = generation
        self._push_nodes.keep_positions()
        self._show_progress()

    def _stop_order(self) -> bytes | None:
        """The contents of the stop node for this job; None without one."""
        try:
            stop = self._session.get(self._stop_path, self._wake.set)
        except AccessDenied:  # the node belongs to another job: this driver could read its own
            return None
        return stop[0] if stop is not None and self._run_key.encode() in stop[0] else None

    def _obey_stop(self, attempt: Attempt) -> None:
        with self._ending:
            if not self._ended.is_set():
                self.streams.pushes.dismiss()
                facts: dict[str, Any] = {"ended": timestamp(), **self.streams.totals()}
                if self._watch is not None:  # without asking Spark, which may no longer answer
                    facts |= redacted({**self._watch.application, "metrics": self._watch.measured()})
                self._close_attempt(attempt.advance(AttemptState.KILLED, **facts), attempt.alive)
                self._session.close()
                self._exit(exit_codes.KILLED, "asked to stop")

    def _leave(self, code: int, reason: str) -> None:
        with self._ending:
            if not self._ended.is_set():
                self._exit(code, reason)

    def _exit(self, code: int, reason: str) -> None:
        self._say(f"this driver ends: {reason}")
        record_exit_code(code)
        os._exit(code)  # the user's code runs in the main thread and must stop

    @staticmethod
    def _say(words: str) -> None:
        print(words, file=sys.stderr, flush=True)  # noqa: T201 - the driver's log
