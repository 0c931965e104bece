"""Enqueue jobs and wait for them: the only part of the library that `job submit` has to load."""

import threading
import time
import uuid
from collections.abc import Iterator, Sequence

from orchestrator.model.act import Act
from orchestrator.model.checkpoint import bound_to_checkpoint, check_checkpoint
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError, WaitTimeout
from orchestrator.model.job import JobState, JobView, view_of
from orchestrator.model.paths import Nodes
from orchestrator.model.plan import Plan, compile_program, encode_plan, mode_of, plan_path, trigger_seconds_of
from orchestrator.model.states import Queue
from orchestrator.policy.policy import Policy
from queues import Create, Entrance, Operation, check_id, encode
from spark_runner.sql.compiler.connections import Connection

_RESCAN_SECONDS = 5.0  # the longest time for which a lost watch hides a change


class Jobs:
    """Jobs from their submission to their end. Safe to use from several threads."""

    def __init__(self, entrance: Entrance, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        self._entrance = entrance
        self._session = entrance.session
        self._layout = entrance.layout

    def submit(
        self,
        definition: Definition,
        *,
        job_id: str | None = None,
        pool: str | None = None,
        delay: float = 0.0,
        extra_operations: Sequence[Operation] = (),
        origin: str = "",
    ) -> JobView:
        """Enqueue a job, due after `delay` seconds, exactly once by its id; `pool` overrides the definition.

        `extra_operations` join the multi: if one is refused, this raises Conflict. `origin` names,
        for users, on whose behalf this login enqueues the job. Raises SqlError for a script that cannot be
        run, DefinitionError (also where the `policy` of the settings refuses the definition), InvalidName,
        IdTaken, QueueFull; then nothing is enqueued.
        """
        plan = compile_program(definition, self._find_connection)
        if pool is not None:
            definition = build_definition(
                definition.model_dump(exclude_defaults=True) | {"pool": pool}, "pool"
            )
        return self.enqueue(
            definition, plan, job_id=job_id, delay=delay, extra_operations=extra_operations, origin=origin
        )

    def enqueue(
        self,
        definition: Definition,
        plan: Plan | None,
        *,
        job_id: str | None = None,
        delay: float = 0.0,
        extra_operations: Sequence[Operation] = (),
        origin: str = "",
    ) -> JobView:
        """Enqueue a job whose program the caller has compiled to `plan`. See `submit`."""
        if definition.script and plan is None:
            raise DefinitionError(f"the script of {definition.name!r} was not compiled")
        self._policy.check(definition.pool, definition, plan=plan)
        check_checkpoint(definition, plan)
        definition = bound_to_checkpoint(definition, plan)
        job_id = str(uuid.uuid4()) if job_id is None else check_id(job_id)
        document = encode(definition.model_dump(mode="json", exclude_defaults=True))
        compiled = None if plan is None else encode_plan(plan)

        def below(path: str) -> Iterator[Operation]:
            yield Create(f"{path}/definition", document)
            if compiled is not None:
                yield Create(plan_path(path), compiled)
            yield from extra_operations

        submitted = Act.now(self._session, "submit", origin)
        state = JobState.enqueued(
            definition.name,
            mode=mode_of(plan),
            trigger_seconds=trigger_seconds_of(plan),
            queued_limit=definition.timeout.queued,
            submitted=submitted,
        )
        record = self._entrance.put(
            Queue.ACCEPT,
            job_id,
            state.model_dump(mode="json", exclude_defaults=True),
            pool=definition.pool,
            delay_ms=round(delay * 1000),
            extra=below,
        )
        return view_of(record)

    def rule_applied(self, definition: Definition, plan: Plan | None, job_id: str) -> str:
        """What `concurrency` means for a job that was just enqueued; empty if no other of its name runs.

        Raises the errors of reads.
        """
        from orchestrator.admission.same_name import rule_applied  # noqa: PLC0415 - programs rarely need it

        return rule_applied(
            self._session,
            self._layout,
            job_id=job_id,
            name=definition.name,
            pool=definition.pool,
            concurrency=bound_to_checkpoint(definition, plan).concurrency,
        )

    def get(self, job_id: str) -> JobView:
        """One job; raises ItemNotFound, CorruptRecord."""
        return view_of(self._entrance.get(job_id))

    def _find_connection(self, name: str) -> Connection:
        from orchestrator.connections.store import ConnectionStore  # noqa: PLC0415 - few scripts name one

        return ConnectionStore(self._session, Nodes(self._layout.root)).find(name)

    # ------------------------------------------------------------------ wait
    def watch(self, job_id: str, wake: threading.Event) -> JobView:
        """One job; the next change of its record sets `wake`."""
        self._session.get(self._layout.record(job_id), wake.set)
        return self.get(job_id)

    def wait(self, job_id: str, timeout: float | None = None) -> JobView:
        """Wait until a job has ended; raises WaitTimeout, ItemNotFound."""
        wake = threading.Event()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (view := self.watch(job_id, wake)).is_final:
            left = _RESCAN_SECONDS if deadline is None else min(_RESCAN_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise WaitTimeout(f"job {job_id!r} is still {view.status} after {timeout:g} s")
            wake.wait(left)
            wake.clear()
        return view
