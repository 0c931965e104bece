"""What spark-submit is started with: settings, log layout, environment, command."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spark_runner.directories import UnsafeDirectory, check_files, private_directory
from spark_runner.driver_memory import driver_bytes
from spark_runner.errors import RefusedSubmission, SubmissionError
from spark_runner.process import INCARNATION_VARIABLE, MEMORY_VARIABLE, RUN_DIR_VARIABLE, RUN_VARIABLE
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.environment import for_drivers, for_hand_over
from spark_runner.runners.java_flags import LAUNCHER_FLAGS, SHORT_JOB_FLAGS, chosen_options, quick_flags
from spark_runner.runners.log_layout import LOG4J2_PROPERTIES
from spark_runner.runners.properties import render_properties
from spark_runner.runners.run_directory import RunDirectory

_LOOPBACK = "127.0.0.1"
# Each user of the host reaches loopback. With a local master Spark draws a secret for each application, and
# keeps it in the memory of its JVM: it stands in no file, no environment and no list of processes.
_AUTHENTICATE = "spark.authenticate"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"


@dataclass(frozen=True, slots=True)
class Launch:
    """How spark-submit is called, or `program` where that is given."""

    arguments: Sequence[str]  # every user of the host can read them: no settings in them
    environment: Mapping[str, str]
    program: Sequence[str] = ()
    directory: str = ""  # where the process works; empty = in the run directory


class QuickStart(Protocol):
    """What lets the JVM of a driver start sooner; see `class_archive`."""

    def conf_dir(self, otherwise: Path) -> Path:
        """The empty directory that is SPARK_CONF_DIR."""

    def options(
        self,
        directory: RunDirectory,
        environment: Mapping[str, str],
        conf: Mapping[str, str],
        chosen: Sequence[str] | None,
    ) -> list[str]:
        """More options, for a JVM that gets those `chosen`; never raises."""


def launch_driver(
    request: SubmitRequest,
    directory: RunDirectory,
    *,
    driver_main: Path,
    conf_dir: Path,
    java_options: Sequence[str] = (),
    quick_start: QuickStart | None = None,
    passed_on: Sequence[str] = (),
) -> Launch:
    """How the driver is started on this host; raises RefusedSubmission, SubmissionError.

    `java_options` are ours, for its JVM; those of the user go before them. `passed_on` are the names of the
    environment that the operator adds to those of each driver.
    """
    directory.write("log4j2.properties", LOG4J2_PROPERTIES)
    environment, options = _quick_jvm(
        request,
        directory,
        inherited=for_drivers(passed_on),
        conf=request.conf,
        java_options=java_options,
        flags=SHORT_JOB_FLAGS if request.is_short else (),
        conf_dir=conf_dir,
        quick_start=quick_start,
    )
    properties = spark_properties(request, directory, options)
    return Launch(
        submit_arguments(
            request,
            directory.write("spark.properties", render_properties(properties)),
            driver_main,
            directory.work / "plan.json",
        ),
        # Every worker of this host sees so what the driver may still come to use.
        environment | {MEMORY_VARIABLE: str(driver_bytes(request.conf))},
        directory=request.directory,
    )


def submit_arguments(
    request: SubmitRequest, properties: Path, program: Path | str, *arguments: object, main_class: str = ""
) -> list[str]:
    """The arguments of spark-submit."""
    target = request.target
    named = ["--properties-file", str(properties), "--master", target.master]
    if target.deploy_mode != "client":
        named += ["--deploy-mode", target.deploy_mode]
    if main_class:
        named += ["--class", main_class]
    return [*named, "--name", request.name, str(program), *map(str, arguments)]


def spark_properties(
    request: SubmitRequest, directory: RunDirectory, more_java_options: Sequence[str] = ()
) -> dict[str, str]:
    """The settings of the driver: our defaults, over them the user's; raises RefusedSubmission."""
    refuse_strangers(request.conf)
    defaults = {
        "spark.ui.enabled": "false",  # a port and a second of start-up that few look at
        "spark.ui.showConsoleProgress": "false",  # bars have no place in a file
        "spark.executor.processTreeMetrics.enabled": "true",  # else nobody knows what Python workers take
        "spark.sql.warehouse.dir": str(directory.work / "spark-warehouse"),
        "spark.local.dir": str(directory.scratch),  # a killed JVM would leave it in /tmp for ever
    }
    if is_local(request.target.master):
        defaults |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
        if _AUTHENTICATE not in request.conf:  # Spark refuses the second without the first
            defaults |= {_AUTHENTICATE: "true", "spark.network.crypto.enabled": "true"}
    java_options = [
        *more_java_options,
        f"-Dlog4j2.configurationFile={(directory.work / 'log4j2.properties').as_uri()}",
        f"-Djava.io.tmpdir={directory.scratch}",  # as spark.local.dir, for the spark-<uuid> beside it
        f"-Dderby.system.home={directory.work}",  # what Java would leave where it works: the user's folder
        f"-XX:ErrorFile={directory.work}/hs_err_pid%p.log",  # likewise
    ]
    # The user's own come last: of two equal options the JVM takes the last.
    options = " ".join([*map(quote_option, java_options), request.conf.get(_JAVA_OPTIONS, "")]).rstrip()
    return defaults | dict(request.conf) | {_JAVA_OPTIONS: options}


def refuse_strangers(conf: Mapping[str, str]) -> None:
    """Raise RefusedSubmission for settings that Spark would not look at."""
    if strangers := [key for key in conf if not key.startswith("spark.")]:
        raise RefusedSubmission(
            f"Spark ignores settings that do not start with `spark.`: {', '.join(strangers)}"
        )


def driver_environment(
    request: SubmitRequest, directory: RunDirectory, conf_dir: Path, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The environment of the shim and of all below it; the names of the run are the last word.

    `inherited` is what of the worker's may be there; `conf_dir` is made when it is not, and stays empty.
    """
    try:
        # Spark runs what is in it, as spark-env.sh; drivers of other users may look into it.
        check_files(private_directory(conf_dir, mode=0o755))
    except UnsafeDirectory as error:
        raise SubmissionError(str(error)) from error
    ours = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf_dir),  # empty: what the job gets is what its run directory shows
    }
    if "SPARK_LAUNCHER_OPTS" not in inherited:
        ours["SPARK_LAUNCHER_OPTS"] = " ".join(LAUNCHER_FLAGS)  # of the JVM that only prints a command line
    if "SPARK_HOME" not in inherited and (spark_home := installed_spark_home()):
        ours["SPARK_HOME"] = str(spark_home)
    if is_local(request.target.master) and "SPARK_LOCAL_IP" not in inherited:
        ours["SPARK_LOCAL_IP"] = _LOOPBACK  # nothing listens beyond this host
    names = {
        RUN_VARIABLE: request.run,
        INCARNATION_VARIABLE: request.incarnation,
        RUN_DIR_VARIABLE: str(directory.work),
    }
    return dict(inherited) | ours | dict(request.environment) | names


def hand_over_environment(
    request: SubmitRequest,
    directory: RunDirectory,
    *java_options: str,
    conf_dir: Path,
    quick_start: QuickStart | None,
    passed_on: Sequence[str] = (),
    is_of_worker: bool = True,
) -> dict[str, str]:
    """The environment of a spark-submit that hands the driver over to a cluster: a JVM of a few seconds.

    `java_options` are ours, for this JVM; those of the user go after them. `is_of_worker`: it acts with the
    credentials of the worker.
    """
    environment, options = _quick_jvm(
        request,
        directory,
        inherited=for_hand_over(passed_on) if is_of_worker else for_drivers(passed_on),
        conf={},  # of the driver, which is another JVM
        java_options=java_options,
        flags=LAUNCHER_FLAGS,
        conf_dir=conf_dir,
        quick_start=quick_start,
    )
    given = environment.get(_SUBMIT_OPTIONS, "")
    environment[_SUBMIT_OPTIONS] = " ".join([*map(quote_option, options), given]).rstrip()
    return environment


def _quick_jvm(
    request: SubmitRequest,
    directory: RunDirectory,
    *,
    inherited: Mapping[str, str],
    conf: Mapping[str, str],
    java_options: Sequence[str],
    flags: Sequence[str],
    conf_dir: Path,
    quick_start: QuickStart | None,
) -> tuple[dict[str, str], list[str]]:
    """The environment of a JVM of this host and our options for it; `conf` has those of the user."""
    environment = driver_environment(
        request, directory, conf_dir if quick_start is None else quick_start.conf_dir(conf_dir), inherited
    )
    chosen = chosen_options(environment, conf)
    ours = [*java_options, *quick_flags(flags, chosen)]
    if quick_start is not None:
        known = None if chosen is None else [*ours, *chosen]
        ours += quick_start.options(directory, environment, conf, known)
    return environment, ours


def spark_submit_command(environment: Mapping[str, str]) -> list[str]:
    """The spark-submit of SPARK_HOME; raises SubmissionError when it or Java is missing."""
    if not (spark_home := environment.get("SPARK_HOME")):
        raise SubmissionError("no Spark: install pyspark or set SPARK_HOME")
    program = Path(spark_home, "bin", "spark-submit")
    if not os.access(program, os.X_OK):
        raise SubmissionError(f"no Spark: {program} is not there or cannot be executed; check SPARK_HOME")
    java_home = environment.get("JAVA_HOME")
    java = str(Path(java_home, "bin", "java")) if java_home else "java"
    if not shutil.which(java, path=environment.get("PATH")):
        raise SubmissionError(f"no Java: `{java}` is not there; install Java 17 or later, or set JAVA_HOME")
    return [str(program)]


def is_local(master: str) -> bool:
    """Whether driver and executors are all on this host."""
    return master.startswith("local")


def installed_spark_home() -> Path | None:
    """The Spark that the pyspark package of this Python brings."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else None


def quote_option(option: str) -> str:
    """One option as Spark's CommandBuilderUtils.parseOptionString takes it apart again."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
