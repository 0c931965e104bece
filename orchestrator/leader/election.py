"""Leader election: an ephemeral node for the lead, and a node that counts the terms."""

import contextlib
import os
import threading
import time
from dataclasses import dataclass

from loguru import logger

from orchestrator.model.errors import NotLeading
from orchestrator.model.paths import Nodes
from queues import (
    Check,
    Conflict,
    Create,
    Delete,
    Operation,
    QueueError,
    Session,
    SessionState,
    Set,
    Wake,
    commit,
    commit_until_deadline,
    encode,
    timestamp,
)

_RESIGN_SECONDS = 2.0  # a drain has little time, and the end of the session removes the node in any case


@dataclass(frozen=True, slots=True)
class _Term:
    number: int  # version of the node that counts the terms
    generation: int  # of the session: its end removes the node and ends the term


class Election:
    """One candidate for the lead. Safe to use from several threads.

    The session that owns the ephemeral node leads. Each election also writes the node of the term, in the
    same multi, so that its version is a fence: ZooKeeper refuses a multi with the `fence` of an earlier
    leader, however late it arrives.
    """

    def __init__(self, session: Session, nodes: Nodes, worker_name: str) -> None:
        self.session = session
        self._nodes, self._name = nodes, worker_name
        self._guard = threading.Lock()
        self._term: _Term | None = None
        self._last_candidacy = (0, b"")  # number and data of this candidate's last attempt to lead
        self._resigned = False

    @property
    def is_leader(self) -> bool:
        """Whether it leads, from local state: False once its session has ended by the local clock."""
        return self._is_valid(self._term)

    def _is_valid(self, term: _Term | None) -> bool:
        session = self.session
        return (
            term is not None
            and term.generation == session.generation
            and session.state is not SessionState.LOST
        )

    def look(self, wake: Wake) -> bool:
        """Take the lead if there is no leader; returns whether this candidate leads.

        `wake` is called when the answer may have changed. Raises the errors of reads and writes.
        """
        session = self.session
        with self._guard:
            if self._resigned or session.state is not SessionState.CONNECTED:
                return self.is_leader
            generation = session.generation
            found = session.get(self._nodes.leader, wake)
            if found is None:
                self._run_for_lead()
                found = session.get(self._nodes.leader, wake)
            if found is None or found[1].owner != session.id:
                self._term = None
            elif found[0] == self._last_candidacy[1]:  # also when the reply to its creation was lost
                self._term = _Term(self._last_candidacy[0], generation)
            else:
                self._term = None
                logger.warning("{} was changed by another program; it is created anew", self._nodes.leader)
                self._remove_foreign()
            return self.is_leader

    def _remove_foreign(self) -> None:
        """Remove a node of this session whose data this candidate did not write."""
        session, path = self.session, self._nodes.leader
        term, found = session.exists(self._nodes.term), session.exists(path)
        if term is not None and found is not None and found.owner == session.id:
            # The check of the term protects the node of the next leader from a resend of this multi.
            commit(session, [Check(self._nodes.term, term.version), Delete(path, found.version)])

    def _run_for_lead(self) -> None:
        path, session = self._nodes.term, self.session
        stat = session.exists(path)
        if stat is None:
            session.ensure_path(path)
            stat = session.exists(path)
        before = 0 if stat is None else stat.version
        document = {
            "worker": self._name,
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "session": f"{session.id:#x}",
            "since": timestamp(),
        }
        data = encode(document)
        self._last_candidacy = (before + 1, data)
        # A conflict means that another candidate was faster, or that the reply to this multi was lost: the
        # owner of the node decides.
        with contextlib.suppress(Conflict):
            commit(session, [Set(path, data, before), Create(self._nodes.leader, data, ephemeral=True)])

    def verify(self) -> bool:
        """Whether it leads now, as read from ZooKeeper; False also without a connection.

        Raises the errors of reads.
        """
        term, session = self._term, self.session
        if not self._is_valid(term) or session.state is not SessionState.CONNECTED:
            return False
        stat = session.exists(self._nodes.leader)
        return stat is not None and stat.owner == session.id and self._is_valid(term)

    def fence(self) -> tuple[Operation, ...]:
        """The operations that fail once another candidate was elected; raises NotLeading.

        Call it before the first read of the data to change.
        """
        term = self._term
        if term is None or not self._is_valid(term):
            raise NotLeading("another worker may lead by now")
        return (Check(self._nodes.term, term.number),)

    def resign(self) -> None:
        """Leave the election and free the lead at once; never raises, takes a few seconds at most."""
        self._resigned = True
        deadline = time.monotonic() + _RESIGN_SECONDS
        if not self._guard.acquire(timeout=_RESIGN_SECONDS):
            return  # a request to ZooKeeper is still unanswered
        try:
            term, self._term = self._term, None
            if term is not None and self.session.state is SessionState.CONNECTED:
                # Every leader's node has version 0: the check of the term proves the owner of this one.
                removal = (Check(self._nodes.term, term.number), Delete(self._nodes.leader))
                commit_until_deadline(self.session, removal, deadline, sent=False)
        except QueueError as error:
            logger.info("{} is removed with the session: {}", self._nodes.leader, error)
        finally:
            self._guard.release()
