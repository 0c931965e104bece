"""Enqueue jobs and wait for them: the only part of the library that `job submit` has to load."""

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator.model.act import Act
from orchestrator.model.checkpoint import bound_to_checkpoint, check_checkpoint
from orchestrator.model.definition import Definition, checked
from orchestrator.model.definition_files import SUFFIXES, load_definition, overridden
from orchestrator.model.errors import DefinitionError, WaitTimeout
from orchestrator.model.fields import MAX_DAYS
from orchestrator.model.job import JobState
from orchestrator.model.job_view import JobView
from orchestrator.model.paths import Nodes
from orchestrator.model.plan import Plan, compile_program, encode_plan, mode_of, plan_path, trigger_seconds_of
from orchestrator.model.states import Queue
from orchestrator.policy.policy import Policy
from queues import Create, Entrance, Operation, check_id, encode
from spark_runner.protocol.text import shortened
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
        job: Definition | Path | str,
        *,
        job_id: str | None = None,
        pool: str | None = None,
        delay: float = 0.0,
        variables: Mapping[str, str | float] | None = None,
        extra_operations: Sequence[Operation] = (),
        origin: str = "",
    ) -> JobView:
        """Enqueue a job, due after `delay` seconds, exactly once by its id.

        The job is a definition, or the name of a file: a definition (.yaml, .json) or a script (.sql, .py).
        `pool` and `variables` override those of the definition. `extra_operations` join the multi: if one is
        refused, this raises Conflict. `origin` names, for users, on whose behalf this login enqueues the job.
        Raises SqlError for a script that cannot be run, DefinitionError (also where the `policy` of the
        settings refuses the definition), InvalidName, IdTaken, QueueFull; then nothing is enqueued.
        """
        definition = _definition(job, pool=pool, variables=variables)
        plan = compile_program(definition, self._find_connection)
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
        if not abs(delay) <= MAX_DAYS * 86_400.0:  # NaN fails every comparison
            raise DefinitionError(f"delay: {delay:g} s is not a duration; the longest is {MAX_DAYS}d")
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
            labels=definition.labels,
        )
        record = self._entrance.put(
            Queue.ACCEPT,
            job_id,
            state.to_payload(),
            pool=definition.pool,
            delay_ms=round(delay * 1000),
            extra=below,
        )
        return JobView.of(record)

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

    def run_here(self, pool: str) -> bool:
        """Whether each worker that now takes jobs of a pool is one of this host, and there is one."""
        from orchestrator.admission.hosts import all_here  # noqa: PLC0415 - as above

        return all_here(self._session, Nodes(self._layout.root), pool)

    def get(self, job_id: str) -> JobView:
        """One job; raises ItemNotFound, CorruptRecord."""
        return JobView.of(self._entrance.get(job_id))

    def _find_connection(self, name: str) -> Connection:
        from orchestrator.connections.store import ConnectionStore  # noqa: PLC0415 - few scripts name one

        return ConnectionStore(self._session, Nodes(self._layout.root)).find(name)

    def wait(self, job_id: str, timeout: float | None = None) -> JobView:
        """Wait until a job has ended, at most `timeout` seconds; raises WaitTimeout, ItemNotFound."""
        wake = threading.Event()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._session.get(self._layout.record(job_id), wake.set)
            if (view := self.get(job_id)).is_final:
                return view
            left = _RESCAN_SECONDS if deadline is None else min(_RESCAN_SECONDS, deadline - time.monotonic())
            if not left > 0:  # NaN fails every comparison
                raise WaitTimeout(f"job {job_id!r} is still {view.status} after {timeout:g} s")
            wake.wait(left)
            wake.clear()


def _definition(
    job: Definition | Path | str, *, pool: str | None, variables: Mapping[str, str | float] | None
) -> Definition:
    """The definition of a job to submit: itself, or that in the named file; raises DefinitionError."""
    if isinstance(job, Definition):
        definition = overridden(checked(job), job.name, pool=pool, variables=variables)
    elif isinstance(job, Path | str):
        shown = shortened(str(job), 100)
        if isinstance(job, str) and ("\n" in job or Path(job).suffix not in SUFFIXES):
            raise DefinitionError(
                f"{shown!r} is not the name of a script (.sql, .py) or a job definition (.yaml, .json);"
                " give a text as Definition(name=..., script=...)"
            )
        definition = load_definition(job, pool=pool, variables=variables)
    else:
        raise DefinitionError(f"a job is a Definition, or the name of a file, not {type(job).__name__}")
    if definition.schedule.is_set:
        raise DefinitionError(
            f"{definition.name!r} has a schedule: register it with client.schedules.put(definition)"
        )
    return definition
