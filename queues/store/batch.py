"""Commits many transactions in few multis."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queues.model.errors import Conflict, OutcomeUnknown, QueueError, TooLarge
from queues.model.operations import Check, Create, Delete, Operation, Set
from queues.session import Posted, ReplyLost, Session
from queues.session.wire import NodeData
from queues.store.commit import (
    MAX_MULTI_BYTES,
    Receipt,
    Receipts,
    Transaction,
    check_size,
    commit_until_deadline,
    examine,
    size,
)

# Measured on one server with fsync and two processors: multis of 100 claims or 200 puts, eight in flight,
# give 35,000 puts or 7,000 to 10,000 moves a second. Half of either gives a third less, more gives no gain.
_OPERATIONS_PER_MULTI = 400
_MULTIS_IN_FLIGHT = 8
_CHANGES = Create | Set | Delete


def commit_many(
    session: Session, transactions: Iterable[Transaction], receipts: Receipts | None = None
) -> list[QueueError | None]:
    """Commit each transaction atomically; returns None or the error for each, in their order.

    Transactions are batched in few multis. A refused transaction rejects its whole multi: the others are sent
    again without it, and without those that would be refused for the same reason. If a reply is lost, a multi
    with a receipt is sent again unchanged; without a receipt its transactions are sent one by one, and a
    conflict is then ambiguous.
    """
    return _MultiBatch(session, transactions, receipts).commit()


def commit_once(session: Session, operations: Transaction, receipts: Receipts) -> bool:
    """Commit one multi that must not be executed twice; False after a Conflict. Raises OutcomeUnknown."""
    (refused,) = commit_many(session, [operations], receipts)
    if refused is not None and not isinstance(refused, Conflict):
        raise refused
    return refused is None


@dataclass(slots=True)
class _Chunk:
    """The transactions of one multi, by index, and how it was sent."""

    positions: list[int]
    operations: list[Operation]
    receipt: Receipt | None
    posted: Posted


class _MultiBatch:
    """Transactions in flight, by their index in the given sequence."""

    def __init__(
        self, session: Session, transactions: Iterable[Transaction], receipts: Receipts | None
    ) -> None:
        self._session = session
        # Transactions are made while earlier ones are in flight: the server need not wait for the last one.
        self._source = iter(transactions)
        self._transactions: list[Transaction] = []
        self._left_over: Transaction | None = None
        self._is_exhausted = False
        self._receipts = receipts
        self._deadline = time.monotonic() + session.settings.call_timeout
        self._outcomes: dict[int, QueueError] = {}
        self._waiting: deque[list[int]] = deque()  # refused chunks, without the culprit
        self._unavailable: QueueError | None = None
        self._uncertain: list[int] = []  # sent without a receipt, and the reply was lost

    def commit(self) -> list[QueueError | None]:
        in_flight: deque[_Chunk] = deque()
        while self._waiting or in_flight or not self._is_exhausted:
            while len(in_flight) < _MULTIS_IN_FLIGHT and self._is_connected(0):
                positions = self._waiting.popleft() if self._waiting else self._next_chunk()
                if not positions:
                    break
                try:
                    in_flight.append(self._post(positions))
                except QueueError as error:
                    self._fail(positions, error)
            if in_flight:
                self._finish(in_flight.popleft())
            elif not self._is_connected(self._deadline - time.monotonic()):
                self._give_up()
        for position in self._uncertain:
            try:
                commit_until_deadline(self._session, self._transactions[position], self._deadline, sent=True)
            except QueueError as error:
                self._outcomes[position] = error
        return [self._outcomes.get(position) for position in range(len(self._transactions))]

    def _give_up(self) -> None:
        hosts = self._session.settings.hosts
        away = self._unavailable or OutcomeUnknown(
            f"no connection to ZooKeeper at {hosts}; nothing was changed"
        )
        while not self._is_exhausted:
            self._waiting.append(self._next_chunk())
        self._fail([position for positions in self._waiting for position in positions], away)
        self._waiting.clear()

    def _post(self, positions: list[int]) -> _Chunk:
        receipt = None if self._receipts is None else self._receipts.take()
        operations: list[Operation] = [] if receipt is None else [receipt.operation]
        operations += [operation for position in positions for operation in self._transactions[position]]
        # Progress extends the deadline: many transactions take longer than the timeout of one call.
        self._deadline = time.monotonic() + self._session.settings.call_timeout
        return _Chunk(positions, operations, receipt, self._session.post(operations))

    def _fail(self, positions: Sequence[int], error: QueueError) -> None:
        self._outcomes.update(dict.fromkeys(positions, error))

    def _finish(self, chunk: _Chunk) -> None:
        try:
            results = chunk.posted.results(max(0.1, self._deadline - time.monotonic()))
            conflict = examine(chunk.operations, results, sent=False)
        except (ReplyLost, OutcomeUnknown):
            if chunk.receipt is None:
                self._uncertain += chunk.positions
                return
            try:
                conflict = self._send_again(chunk)
            except QueueError as error:
                self._fail(chunk.positions, error)
                return
        if conflict is not None and chunk.receipt is not None and conflict.index == 0:
            self._waiting.appendleft(chunk.positions)  # the receipt was removed: send with another one
            return
        if chunk.receipt is not None and self._receipts is not None:
            self._receipts.give_back(chunk.receipt, used=conflict is None)
        if conflict is not None:
            self._refuse(chunk, conflict)

    def _send_again(self, chunk: _Chunk) -> Conflict | None:
        """Send the identical multi again: its receipt shows whether the first send was committed."""
        try:
            commit_until_deadline(self._session, chunk.operations, self._deadline, sent=True)
        except Conflict as conflict:
            if conflict.index != 0:
                return conflict  # the receipt was unchanged: this is a refusal, not an echo
            if conflict.reason != "BadVersion":
                raise OutcomeUnknown(
                    "a receipt no longer exists; its multi may or may not have been committed"
                ) from conflict
        return None

    def _refuse(self, chunk: _Chunk, conflict: Conflict) -> None:
        """Record the error of the refused transaction, and queue the others of its multi again."""
        first = index = conflict.index - (chunk.receipt is not None)
        position = chunk.positions[0]
        for position in chunk.positions:
            if index < len(self._transactions[position]):
                break
            index -= len(self._transactions[position])
        before = chunk.operations[: conflict.index - index]
        culprit = chunk.operations[conflict.index]
        if first != index and any(isinstance(o, _CHANGES) and o.path == culprit.path for o in before):
            # Another transaction of the multi caused the refusal, and was rejected too: send this one again.
            self._waiting.append([position])
        else:
            self._outcomes[position] = Conflict(index, culprit, conflict.reason, ambiguous=False)
        rest = self._sift([other for other in chunk.positions if other != position], type(culprit))
        if rest:
            self._waiting.appendleft(rest)

    def _sift(self, positions: list[int], kind: type[Operation]) -> list[int]:
        """The indexes without those that one read shows would be refused by an operation of this kind.

        A multi names only one culprit: under contention, each further one would cost a multi of all.
        """
        transactions = [(position, self._transactions[position]) for position in positions]
        changes = Counter(
            o.path for _, transaction in transactions for o in transaction if isinstance(o, _CHANGES)
        )
        # A path that another transaction changes may be in the expected state by then.
        own = 0 if kind is Check else 1
        asked = [
            (position, index, operation)
            for position, transaction in transactions
            for index, operation in enumerate(transaction)
            if type(operation) is kind and changes[operation.path] == own
        ]
        if not self._is_connected(0):
            return positions
        try:
            nodes = self._session.get_many([operation.path for _, _, operation in asked])
        except QueueError:
            return positions  # the server decides
        for (position, index, operation), node in zip(asked, nodes, strict=True):
            reason = _objection(operation, node)
            if reason is not None:
                self._outcomes.setdefault(position, Conflict(index, operation, reason, ambiguous=False))
        return [position for position in positions if position not in self._outcomes]

    def _is_connected(self, seconds: float) -> bool:
        try:
            return self._session.wait_connected(seconds)
        except QueueError as error:  # closed, or access denied
            self._unavailable = error
            return False

    def _next_chunk(self) -> list[int]:
        """Indexes of the next transactions that fit in one multi; one that fits in none gets its error."""
        positions: list[int] = []
        filled = 0
        operations = 0
        while operations < _OPERATIONS_PER_MULTI:
            transaction = self._left_over if self._left_over is not None else next(self._source, None)
            self._left_over = None
            if transaction is None:
                self._is_exhausted = True
                break
            weight = size(transaction)
            if positions and filled + weight > MAX_MULTI_BYTES:
                self._left_over = transaction
                break
            self._transactions.append(transaction)
            try:
                check_size(weight)
            except TooLarge as error:
                self._outcomes[len(self._transactions) - 1] = error
                continue
            positions.append(len(self._transactions) - 1)
            filled += weight
            operations += len(transaction)
        return positions


def _objection(operation: Operation, node: NodeData | None) -> str | None:
    """The reason why this operation would be refused with the current node."""
    if isinstance(operation, Create):
        return None if node is None else "NodeExists"
    if node is None:
        return "NoNode"
    return None if operation.version in {-1, node[1].version} else "BadVersion"
