"""Changes of the limits of pushes while their jobs run."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from orchestrator.admin.job_changes import Operator
from orchestrator.model.errors import AlreadyEnded, DefinitionError
from orchestrator.model.granted_node import document_of, written
from orchestrator.model.job import state_of
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from queues import (
    Check,
    Create,
    NodeData,
    NotClaimed,
    Operation,
    Record,
    Refusal,
    Set,
    commit_once,
    encode,
)
from spark_runner.protocol.adjustment_node import ADJUSTMENT
from spark_runner.push.adjustment import Adjustment
from spark_runner.push.errors import SettingError

_MAX_TRIES = 20  # the job, or its node, changes meanwhile


class Adjustments:
    """Writes the node from which a driver takes the limits of its pushes."""

    def __init__(self, operator: Operator) -> None:
        self._operator, self._set = operator, operator.set
        self._session, self._nodes = operator.set.session, Nodes(operator.set.layout.root)

    def change(
        self,
        job_id: str,
        values: Mapping[str, Any],
        *,
        pause: Iterable[str] = (),
        resume: Iterable[str] = (),
        is_rollback: bool = False,
        keep: bool = False,
    ) -> Adjustment:
        """Change limits of the pushes of a job, by the names of Adjustment, and return all changes so far.

        `pause` and `resume` are lanes. `keep`: the next jobs of this name begin with the same limits. Raises
        AlreadyEnded, DefinitionError, ItemNotFound.
        """
        path, pause, resume = f"{self._set.layout.record(job_id)}/{ADJUSTMENT}", [*pause], [*resume]
        for _ in range(_MAX_TRIES):
            record, version = self._set.read(job_id)
            view = JobView.of(record)
            if view.is_final:
                raise AlreadyEnded(f"job {job_id!r} has already ended as {view.status}")
            found = self._session.get(path)
            before = self._before(found, record)
            more = {"rollbacks": before.rollbacks + 1} if is_rollback else {}
            try:
                after = before.changed({**values, **more}, pause=pause, resume=resume)
            except SettingError as error:
                raise DefinitionError(str(error)) from error
            act = self._operator.trail.act("adjust", f"{after}, kept" if keep else str(after))
            document = {**after.document(), "run_key": record.run_key, **act.note()}
            login = self._operator.side_nodes.login(record)
            operations = [
                Check(self._set.layout.record(job_id), version),
                *written(path, found, document, login=login),
                *(self._kept(view.name, after) if keep else ()),
                self._operator.trail.job_entry(act, record),
            ]
            if commit_once(self._session, operations, self._set.root.receipts):
                return after
        raise NotClaimed(job_id, Refusal.MOVED_ON)

    def _before(self, found: NodeData | None, record: Record) -> Adjustment:
        """All changes so far, with which a job begins if it has not started; of a damaged node, none."""
        said, state = {} if found is None else document_of(found[0]), state_of(record)
        if said.get("run_key") != record.run_key:
            kept = self._session.get(self._nodes.adjustment(state.name)) if not state.first_started else None
            said = {} if kept is None else document_of(kept[0])
        try:
            return Adjustment.of(said)
        except SettingError:
            return Adjustment()

    def _kept(self, name: str, adjustment: Adjustment) -> list[Operation]:
        """The operation that keeps the limits for the next jobs of a name."""
        self._session.ensure_path(self._nodes.adjustments)
        path = self._nodes.adjustment(name)
        found, data = self._session.get(path), encode(replace(adjustment, rollbacks=0).document())
        return [Create(path, data)] if found is None else [Set(path, data, found[1].version)]
