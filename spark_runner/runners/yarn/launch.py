"""The settings and environment of spark-submit for YARN, in both deploy modes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_runner.protocol.process import INCARNATION_VARIABLE, RUN_DIR_VARIABLE, RUN_VARIABLE
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.driver_zip import driver_zip
from spark_runner.runners.files import content_file
from spark_runner.runners.launch import (
    Launch,
    QuickStart,
    cluster_submit_environment,
    refuse_other_settings,
    submit_arguments,
)
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_log import DRIVER, EXECUTOR, LOG4J2_PROPERTIES, TO_STDERR, with_log_layout
from spark_runner.runners.spark_settings import MEMORY_MEASURES, PAGES_OFF, render_properties

PLAN = "orchestrator-plan.json"  # its name in the driver's working directory, beside the user's files
_LAYOUT = "orchestrator-log4j2.properties"  # likewise, and in the containers of executors
_FILES = "spark.yarn.dist.files"
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_ENVIRONMENT = "spark.yarn.appMasterEnv."
_INCARNATION = "orchestrator-incarnation-"
_LOG_DIR = "<LOG_DIR>"  # YARN replaces it by the log folder of the container


def run_tag(run: str) -> str:
    """The tag of all submissions of a run; YARN keeps tags in lower case."""
    return f"orchestrator-run-{run}".lower()


def incarnation_tag(incarnation: str) -> str:
    """The tag of one submission."""
    return f"{_INCARNATION}{incarnation}".lower()


def incarnation_of(tags: frozenset[str]) -> str:
    """The incarnation in the tags of an application; empty if it is not of this orchestrator."""
    return next((tag.removeprefix(_INCARNATION) for tag in tags if tag.startswith(_INCARNATION)), "")


def launch_on_cluster(
    request: SubmitRequest,
    directory: RunDirectory,
    *,
    driver_main: Path,
    shared_dir: Path,
    quick_start: QuickStart | None = None,
    passed_on: Sequence[str] = (),
    as_worker: bool = True,
) -> Launch:
    """The spark-submit that submits a driver to YARN; raises RefusedSubmission, SubmissionError.

    The jars of a job are on the class path of this spark-submit, and its settings can name their classes.
    `as_worker` is therefore false if the drivers of the pool run as another user.
    """
    log4j = directory.write("log4j2.properties", LOG4J2_PROPERTIES)
    conf = yarn_properties(request, shared_dir / "driver") | {
        "spark.yarn.submit.waitAppCompletion": "false",
        **with_log_layout(request.conf, _LAYOUT, DRIVER),
        f"{_ENVIRONMENT}{RUN_VARIABLE}": request.run,
        f"{_ENVIRONMENT}{INCARNATION_VARIABLE}": request.incarnation,
        # The driver writes its output and its outcome to this folder; YARN keeps and serves its files.
        f"{_ENVIRONMENT}{RUN_DIR_VARIABLE}": _LOG_DIR,
    }
    plan = (directory.work / "plan.json").as_uri()  # written before spark-submit starts
    conf["spark.files"] = _joined(conf.get("spark.files", ""), f"{plan}#{PLAN}")
    properties = directory.write("spark.properties", render_properties(conf))
    environment = cluster_submit_environment(
        request,
        directory,
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        f"-Djava.io.tmpdir={directory.scratch}",
        conf_dir=shared_dir / "spark-conf",
        quick_start=quick_start,
        passed_on=passed_on,
        as_worker=as_worker,
    )
    for name in _PYTHONS:
        environment.pop(name, None)  # the worker's interpreter; nodes have their own
        if given := request.environment.get(name) or os.environ.get(name):
            environment[name] = given
    return Launch(submit_arguments(request, properties, driver_main, PLAN), environment)


def yarn_properties(request: SubmitRequest, folder: Path) -> dict[str, str]:
    """The user's settings, overridden by the orchestrator's; raises RefusedSubmission, SubmissionError.

    `folder` holds the files that every driver gets.
    """
    conf: Mapping[str, str] = request.conf
    refuse_other_settings(conf)
    layout = content_file(folder, "log4j2", ".properties", TO_STDERR.encode()).as_uri()
    tags = (run_tag(request.run), incarnation_tag(request.incarnation))
    queue = request.target.options.get("queue", "")
    return {
        **PAGES_OFF,
        "spark.ui.showConsoleProgress": "false",
        **MEMORY_MEASURES,
        **conf,
        **({"spark.yarn.queue": queue} if queue else {}),
        **with_log_layout(conf, _LAYOUT, EXECUTOR),
        _FILES: _joined(conf.get(_FILES, ""), f"{layout}#{_LAYOUT}"),
        "spark.submit.pyFiles": _joined(
            conf.get("spark.submit.pyFiles", ""), str(driver_zip(folder, request.python_packages))
        ),
        "spark.yarn.tags": _joined(conf.get("spark.yarn.tags", ""), *tags),
        # YARN must not retry: a second try is a new attempt with its own record.
        "spark.yarn.maxAppAttempts": "1",
    }


def _joined(*items: str) -> str:
    return ",".join(filter(None, items))
