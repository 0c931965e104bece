"""Which worker does what must be done by one: an ephemeral node, and a count of those who had it."""

import contextlib
import os
import threading
import time
from dataclasses import dataclass

from loguru import logger

from orchestrator.errors import NotLeading
from orchestrator.nodes import Nodes
from queues.documents import encode, timestamp
from queues.errors import Conflict, QueueError
from queues.operations import Check, Create, Delete, Operation, Set
from queues.session import Session, SessionState, Wake
from queues.transaction import commit, insist

_RESIGN_SECONDS = 2.0  # who drains has little time, and the node goes with the session in any case


@dataclass(frozen=True, slots=True)
class _Term:
    number: int  # version of the node that counts the terms
    generation: int  # of the session: with that the node is gone, and the term over


class Election:
    """One candidate for the lead. Safe to use from several threads.

    The leader is who owns the ephemeral node. Each election writes the node of the term as well, in the same
    multi, so that its version is a fence: what a leader does with `fence` in its multi is refused as soon as
    another one was elected, however late it arrives.
    """

    def __init__(self, session: Session, nodes: Nodes, worker_name: str) -> None:
        self.session = session
        self._nodes, self._name = nodes, worker_name
        self._guard = threading.Lock()
        self._term: _Term | None = None
        self._stood = (0, b"")  # the number and the data with which this candidate stood last
        self._resigned = False

    @property
    def is_leader(self) -> bool:
        """Whether it leads as far as is known here: not beyond its session, by our own clock."""
        return self._is_valid(self._term)

    def _is_valid(self, term: _Term | None) -> bool:
        session = self.session
        return (
            term is not None
            and term.generation == session.generation
            and session.state is not SessionState.LOST
        )

    def look(self, wake: Wake) -> bool:
        """Take the lead where nobody has it; whether it is ours. `wake` is called when that may change.

        Raises what reads and writes raise.
        """
        session = self.session
        with self._guard:
            if self._resigned or session.state is not SessionState.CONNECTED:
                return self.is_leader
            generation = session.generation
            found = session.get(self._nodes.leader, wake)
            if found is None:
                self._stand()
                found = session.get(self._nodes.leader, wake)
            if found is None or found[1].owner != session.id:
                self._term = None
            elif found[0] == self._stood[1]:  # also when the reply to its making was lost
                self._term = _Term(self._stood[0], generation)
            else:
                self._term = None
                logger.warning("{} was changed by somebody; it is made anew", self._nodes.leader)
                self._remove_foreign()
            return self.is_leader

    def _remove_foreign(self) -> None:
        """Remove the node that is of our session, and not as we made it."""
        session, path = self.session, self._nodes.leader
        term, found = session.exists(self._nodes.term), session.exists(path)
        if term is not None and found is not None and found.owner == session.id:
            # That no other was elected since keeps a second sending from the node of the next leader.
            commit(session, [Check(self._nodes.term, term.version), Delete(path, found.version)])

    def _stand(self) -> None:
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
        self._stood = (before + 1, data)
        # Refused: somebody was faster, or it is our own and its reply was lost. The owner of the node tells.
        with contextlib.suppress(Conflict):
            commit(session, [Set(path, data, before), Create(self._nodes.leader, data, ephemeral=True)])

    def verify(self) -> bool:
        """Whether it leads at this moment, by ZooKeeper's word; False also while there is no connection.

        Raises what reads raise.
        """
        term, session = self._term, self.session
        if not self._is_valid(term) or session.state is not SessionState.CONNECTED:
            return False
        stat = session.exists(self._nodes.leader)
        return stat is not None and stat.owner == session.id and self._is_valid(term)

    def fence(self) -> tuple[Operation, ...]:
        """What refuses a multi once another one was elected; raises NotLeading.

        To be had before the first look at what is to be changed.
        """
        term = self._term
        if term is None or not self._is_valid(term):
            raise NotLeading("another worker may lead by now")
        return (Check(self._nodes.term, term.number),)

    def resign(self) -> None:
        """Stand no more, and give the lead to who waits for it; never raises, takes a few seconds at most."""
        self._resigned = True
        deadline = time.monotonic() + _RESIGN_SECONDS
        if not self._guard.acquire(timeout=_RESIGN_SECONDS):
            return  # ZooKeeper does not answer
        try:
            term, self._term = self._term, None
            if term is not None and self.session.state is SessionState.CONNECTED:
                # That no other was elected since proves that the node is ours: all have version 0.
                removal = (Check(self._nodes.term, term.number), Delete(self._nodes.leader))
                insist(self.session, removal, deadline, sent=False)
        except QueueError as error:
            logger.info("{} goes with the session: {}", self._nodes.leader, error)
        finally:
            self._guard.release()
