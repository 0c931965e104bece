"""The resources of an attempt: decided before its intent is written, and suggested after it has ended."""

from collections.abc import Sequence
from dataclasses import replace

from loguru import logger

from orchestrator.config.tuning import PoolTuning
from orchestrator.handlers.job_context import JobContext
from orchestrator.history.key import Key
from orchestrator.model.errors import CorruptHistory, HistoryNotFound
from orchestrator.model.spark import Spark
from orchestrator.model.tuning import TuningMode
from orchestrator.tuning.decision import Decision, Situation, decide
from orchestrator.tuning.record import ModeInForce, ModeSource, StoredDecision, TuningRecord
from orchestrator.tuning.resources import MIB, Resource, with_resources
from orchestrator.tuning.signals import USUALLY_SHORT, Run
from queues import OutcomeUnknown, SessionLost, Unreachable, timestamp
from spark_runner.protocol.attempt import run_name

DECISION = "tuning-decision"  # a value of `event.action`


def tuned_properties(job: JobContext, spark: Spark, number: int) -> dict[str, str] | None:
    """The Spark properties that an attempt gets instead of those of its definition; None without any.

    In mode `suggest` they follow from no past run: it gets what operators have set, and more after an attempt
    of the same job that was out of memory. Raises when ZooKeeper is unreachable; no other error of the tuning
    stops a job.
    """
    before = job.state.tuned if number > 1 else None
    store = job.context.reporting.tunings
    if store is None:
        return None
    try:
        record = store.read(job.definition.name)
        in_force = _mode(job, record)
        mode = in_force.mode
        if mode is TuningMode.OFF:
            return None
        short_of = _short_of(job) if number > 1 else None
        if mode is TuningMode.SUGGEST and not (short_of or before or record.pins or record.caps):
            return None
        situation = _situation(job, spark, record)
        if number > 1:
            conf = {**with_resources(spark, before).properties, "spark.master": spark.target.master}
            situation = replace(situation, before=conf, short_of=short_of)
        decision = decide((), situation) if mode is TuningMode.SUGGEST else _decision(job, situation)
        if mode is TuningMode.APPLY or short_of:
            _keep(job, decision, situation, in_force, run=run_name(job.run_key, number))
    except (OutcomeUnknown, SessionLost, Unreachable):
        raise
    except Exception as error:  # noqa: BLE001 - an error of the tuning must not stop a job
        has = "the resources of its attempt before" if before else "the resources of its definition"
        logger.warning("{} runs with {}: {}", job.id, has, error)
        return before
    return decision.properties or None


def suggest(job: JobContext) -> None:
    """Store what the next run of the name would get, in mode `suggest`; errors as above."""
    store = job.context.reporting.tunings
    if store is None:
        return
    try:
        record = store.read(job.definition.name)
        in_force = _mode(job, record)
        if in_force.mode is TuningMode.SUGGEST:
            situation = _situation(job, job.spark, record)
            _keep(job, _decision(job, situation), situation, in_force)
    except (OutcomeUnknown, SessionLost, Unreachable):
        raise
    except Exception as error:  # noqa: BLE001 - likewise
        logger.warning("nothing is suggested for the next run of {}: {}", job.definition.name, error)


def _mode(job: JobContext, record: TuningRecord) -> ModeInForce:
    """That of an operator, else that of the definition, else that of the pool."""
    if record.mode:
        return ModeInForce(record.mode, ModeSource.OPERATOR)
    if own := job.definition.tuning.mode:
        return ModeInForce(TuningMode(own), ModeSource.DEFINITION)
    pool = _pool(job)
    is_set = "mode" in pool.model_fields_set
    return ModeInForce(pool.mode, ModeSource.POOL if is_set else ModeSource.DEFAULT)


def _pool(job: JobContext) -> PoolTuning:
    return job.context.rules.tuning_of(job.claim.record.pool)


def _situation(job: JobContext, spark: Spark, record: TuningRecord) -> Situation:
    own, pool = job.definition.tuning, _pool(job)
    return Situation(
        Key.of(job.definition),
        {**spark.properties, "spark.master": spark.target.master},
        kept=frozenset(map(Resource, own.pinned)),
        pins=record.pins,
        caps=record.caps,
        containers=pool.containers,
        hosts=_hosts(job, spark),
        forgotten=record.forgotten,
        gains=pool.gains,
        input=own.input or None,
        now=timestamp(),
    )


def _short_of(job: JobContext) -> str | None:
    """What the attempt before was short of; None where it was not out of memory."""
    error = job.state.error
    return (error.short_of or USUALLY_SHORT) if error and error.error_class == "memory" else None


def _hosts(job: JobContext, spark: Spark) -> dict[str, float]:
    """The memory of this host in MiB, for a driver that runs on it: a larger one would never start."""
    guard = job.context.admission.guard
    total = None if guard is None or spark.target.deploy_mode == "cluster" else guard.total()
    return {} if total is None else {"driver": total / MIB}


def _decision(job: JobContext, situation: Situation) -> Decision:
    runs: Sequence[Run] = ()
    damage = ""
    history = job.context.reporting.history
    try:
        runs = () if history is None else history.read(job.definition.name)
    except HistoryNotFound:
        pass
    except CorruptHistory as error:
        damage = str(error)
        logger.warning("the resources of {} follow from no past run: {}", job.id, damage)
    decision = decide(runs, situation)
    return replace(decision, left_out=damage) if damage else decision


def _keep(
    job: JobContext, decision: Decision, situation: Situation, mode: ModeInForce, *, run: str = ""
) -> None:
    """Store a decision, and send it to the logs; one that says the same as the last one is not repeated."""
    store = job.context.reporting.tunings
    stored = StoredDecision.of(decision, situation, at=situation.now, job=job.id, run=run, mode=mode)
    if store is None or not decision.says_anything or not store.add(job.definition.name, stored):
        return
    changed = [each for each in decision.choices if each.after != each.before]
    said = "; ".join(f"{each.resource}: {each.why}" for each in changed) or "nothing changes"
    fields = {
        "event.kind": "event",
        "event.dataset": "orchestrator.tuning",
        "event.action": DECISION,
        "job.name": job.definition.name,
        "job.tuning": stored.model_dump(mode="json"),
    }
    about = logger.bind(job_id=job.id, run_key=job.run_key, pool=job.claim.record.pool, fields=fields)
    if run:
        about.info("resources of run {}: {}", run, said)
    else:
        about.info("tuning suggests for the next run of {}: {}", job.definition.name, said)
