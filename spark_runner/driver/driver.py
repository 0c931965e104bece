"""The program inside Spark: it takes the attempt, runs the job and records the outcome.

Everything that this module imports travels to nodes that have only Java and PySpark: the standard library,
kazoo, and pure-Python modules of these packages.
"""

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spark_runner.driver import outcome
from spark_runner.driver.attempt_holder import AttemptHolder, Superseded
from spark_runner.driver.jvm import Jvm, JvmEnds, JvmGone, OwnJvm
from spark_runner.driver.last_words import LastWords
from spark_runner.driver.program import run_program, user_code
from spark_runner.driver.progress import SparkMonitor
from spark_runner.protocol import exit_codes
from spark_runner.protocol.announcement import announce, record_exit_code
from spark_runner.protocol.errors import PlanError
from spark_runner.protocol.process import end_with_parent, keep_streams_apart, name_application
from spark_runner.protocol.run_plan import RunPlan, SqlProgram
from spark_runner.protocol.sizing import is_local_master
from spark_runner.protocol.zookeeper import QueueError, Session, SessionSettings
from spark_runner.sql.execution.inputs import refuse_missing_inputs

# PySpark would tell Spark the line of Python of each operation: those of a script are all in this package.
_OF_SCRIPTS = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
_OWN_LOGGERS = ("kazoo", "queues", "spark_runner")  # their warnings go to stderr
_JVM_END_SECONDS = 60.0  # Spark's hooks take some of it; the killer sends KILL after the grace


def main(arguments: Sequence[str]) -> int:
    """Run the plan in the file that the only argument names; returns the exit code of the driver."""
    end_with_parent()
    keep_streams_apart()
    for name in _OWN_LOGGERS:  # the logs of the program are its own: handlers of the root show none of these
        logging.getLogger(name).propagate = False
    announce()
    exit_code = _drive(arguments)
    record_exit_code(exit_code)
    return exit_code


def _drive(arguments: Sequence[str]) -> int:
    try:
        plan = RunPlan.read(Path(arguments[0]))
    except PlanError as error:
        print(f"this driver ends without running anything: {error}", file=sys.stderr)  # noqa: T201 - its log
        return 1
    session, jvm = Session(SessionSettings.from_plan(plan.zookeeper)), _jvm_of(plan)
    try:
        jvm.enter()
        session.start()
        holder = AttemptHolder(session, plan)
        holder.take()
    except Superseded as error:
        print(f"this driver ends without running anything: {error}", file=sys.stderr)  # noqa: T201 - its log
        return exit_codes.SUPERSEDED
    except (QueueError, JvmGone) as error:
        print(f"the attempt could not be taken, nothing was run: {error}", file=sys.stderr)  # noqa: T201
        return exit_codes.NO_CONTACT
    try:
        ended, exit_code = _run(plan, holder, jvm)
    except JvmEnds as error:
        print(f"this driver ends without an outcome: {error}", file=sys.stderr, flush=True)  # noqa: T201
        holder.abandon()
        session.close()
        time.sleep(
            _JVM_END_SECONDS
        )  # the JVM ends this process too; an exit here would hide the JVM's exit code
        return exit_codes.KILLED
    outcome.write_beside_logs(ended)
    try:
        holder.end(ended)
    except Superseded as error:
        print(f"the outcome was not recorded: {error}", file=sys.stderr)  # noqa: T201 - its log
        return exit_codes.SUPERSEDED
    jvm.leave()
    session.close()
    return exit_code


def _jvm_of(plan: RunPlan) -> Jvm:
    if not plan.warm:
        return OwnJvm(_OF_SCRIPTS if isinstance(plan.program, SqlProgram) else {})
    from spark_runner.driver.jvm import WarmJvm  # noqa: PLC0415 - few drivers need it

    return WarmJvm(Path(plan.warm), plan.incarnation)


def _run(plan: RunPlan, holder: AttemptHolder, jvm: Jvm) -> tuple[dict[str, Any], int]:
    """Run the user's program; returns its outcome with metrics, and the matching exit code."""
    facts: dict[str, Any] = {}
    ended, exit_code = _run_program(plan, holder, jvm, facts)
    if metrics := holder.finish_watching():
        facts["metrics"] = metrics
    facts |= holder.streams.totals(facts.get("tables", ()))
    return {**ended, "exit_code": exit_code, **facts}, exit_code


def _run_program(
    plan: RunPlan, holder: AttemptHolder, jvm: Jvm, facts: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    is_local, last_words = False, None
    try:
        if isinstance(plan.program, SqlProgram):
            refuse_missing_inputs(plan.program.script)
        holder.report("starting Spark")
        spark = jvm.session()
        is_local = is_local_master(str(getattr(spark.sparkContext, "master", "")))
        watch = SparkMonitor(spark, holder.notify, jvm.job_group)
        facts |= watch.application
        name_application(watch.application)
        holder.attach_monitor(watch)
        bad_rows, last_words = list[dict[str, Any]](), LastWords()
        try:
            facts["tables"] = run_program(spark, plan, holder.report, bad_rows, holder.streams)
        finally:
            if bad_rows:
                facts["bad_rows"] = bad_rows
    except SystemExit as ending:
        return outcome.of_exit(ending, last_words)
    except BaseException as error:  # noqa: BLE001 - any end of the user's code is its outcome
        gone = jvm.gone()
        code = user_code(plan) if gone is None else None
        return outcome.of_error(error if gone is None else gone, is_local=is_local, code=code), 1
    return {"state": "succeeded"}, 0
