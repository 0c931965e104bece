"""The call of spark-submit: its settings, log layout, environment and command."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from queues import UnsafeDirectory, check_files, private_directory
from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.protocol.process import (
    INCARNATION_VARIABLE,
    MEMORY_VARIABLE,
    RUN_DIR_VARIABLE,
    RUN_VARIABLE,
)
from spark_runner.protocol.sizing import driver_bytes
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.driver_zip import driver_zip, zip_bytes
from spark_runner.runners.files import content_file
from spark_runner.runners.installation import installed_spark_home
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_log import LOG4J2_PROPERTIES
from spark_runner.runners.spark_settings import (
    LAUNCHER_FLAGS,
    LOCAL_MEASURES,
    MEMORY_MEASURES,
    PAGES_OFF,
    SHORT_JOB_FLAGS,
    chosen_options,
    for_cluster_submit,
    for_drivers,
    quick_flags,
    render_properties,
)

_LOOPBACK = "127.0.0.1"
# Every user of the host reaches loopback. With a local master Spark generates a secret for each application
# and keeps it in the memory of its JVM: it is in no file, no environment and no list of processes.
_AUTHENTICATE = "spark.authenticate"
_WAREHOUSE = "spark.sql.warehouse.dir"
_WAREHOUSE_OF_HIVE = "spark.hadoop.hive.metastore.warehouse.dir"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PY_FILES = "spark.submit.pyFiles"
_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of spark-submit, or of `program` if that is given."""

    arguments: Sequence[str]  # every user of the host can read them, so they hold no settings
    environment: Mapping[str, str]
    program: Sequence[str] = ()
    directory: str = ""  # the working directory; empty = the run directory


class QuickStart(Protocol):
    """Options with which the JVM of a driver starts sooner; see `class_archive`."""

    def conf_dir(self, otherwise: Path) -> Path:
        """The empty directory for SPARK_CONF_DIR."""

    def options(
        self,
        directory: RunDirectory,
        environment: Mapping[str, str],
        conf: Mapping[str, str],
        chosen: Sequence[str] | None,
    ) -> list[str]:
        """Additional options for a JVM that has the options `chosen`; never raises."""


def launch_driver(
    request: SubmitRequest,
    directory: RunDirectory,
    *,
    driver_main: Path,
    conf_dir: Path,
    shared_dir: Path | None = None,
    java_options: Sequence[str] = (),
    quick_start: QuickStart | None = None,
    passed_on: Sequence[str] = (),
) -> Launch:
    """The call that starts the driver on this host; raises RefusedSubmission, SubmissionError.

    `shared_dir` is a folder that the users of all drivers may read; without it no code of connectors travels.
    To another Python than that of the worker all code travels, also on this host.
    `java_options` are the orchestrator's options for its JVM; the user's options override them. `passed_on`
    are the names of variables that the operator adds to the environment of each driver.
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
    travels = set(request.python_packages)
    if is_local(request.target.master):
        travels -= {"spark_runner"}  # driver and executors import the installed one
    if request.needs_code or (shared_dir is not None and travels):
        code = str(code_zip(request, directory, shared_dir))
        properties[_PY_FILES] = ",".join(filter(None, (properties.get(_PY_FILES, ""), code)))
    return Launch(
        submit_arguments(
            request,
            directory.write("spark.properties", render_properties(properties)),
            driver_main,
            directory.work / "plan.json",
        ),
        # Every worker of this host can read here how much memory the driver may still use.
        environment | {MEMORY_VARIABLE: str(driver_bytes(request.conf))},
        directory=request.directory,
    )


def code_zip(request: SubmitRequest, directory: RunDirectory, shared_dir: Path | None) -> Path:
    """The zip with the code of a driver: in the shared folder, or without one in its run directory.

    Raises SubmissionError.
    """
    if shared_dir is None:
        return content_file(directory.work, "driver", ".zip", zip_bytes(request.python_packages))
    return driver_zip(shared_dir / "driver", request.python_packages)


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
    """The settings of the driver: the orchestrator's defaults, overridden by the user's.

    Raises RefusedSubmission.
    """
    refuse_other_settings(request.conf)
    defaults = {
        **PAGES_OFF,
        "spark.ui.showConsoleProgress": "false",  # progress bars do not belong in a file
        _WAREHOUSE: str(directory.work / "spark-warehouse"),
    }
    if is_local(request.target.master):
        defaults |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
        if _AUTHENTICATE not in request.conf:  # Spark refuses the second without the first
            defaults |= {_AUTHENTICATE: "true", "spark.network.crypto.enabled": "true"}
        defaults |= LOCAL_MEASURES
    else:
        defaults |= MEMORY_MEASURES
    if request.conf.get("spark.sql.catalogImplementation") == "hive":
        del defaults[
            _WAREHOUSE
        ]  # the metastore keeps the places of tables, and the folder of a run is removed
        if not {_WAREHOUSE, _WAREHOUSE_OF_HIVE} & request.conf.keys():
            raise RefusedSubmission(
                f"Hive needs a folder for new databases: set {_WAREHOUSE} in `conf`, as on the metastore"
            )
    java_options = [
        *more_java_options,
        f"-Dlog4j2.configurationFile={(directory.work / 'log4j2.properties').as_uri()}",
        f"-Djava.io.tmpdir={directory.scratch}",  # for spark.local.dir too: a killed JVM leaves files
        f"-Dderby.system.home={directory.work}",  # Java's files would end up in the user's working directory
        f"-XX:ErrorFile={directory.work}/hs_err_pid%p.log",  # likewise
    ]
    # The user's options come last: of two equal options the JVM takes the last.
    options = " ".join([*map(quote_option, java_options), request.conf.get(_JAVA_OPTIONS, "")]).rstrip()
    return defaults | dict(request.conf) | {_JAVA_OPTIONS: options}


def refuse_other_settings(conf: Mapping[str, str]) -> None:
    """Raise RefusedSubmission for settings that Spark would ignore."""
    if others := [key for key in conf if not key.startswith("spark.")]:
        raise RefusedSubmission(
            f"Spark ignores settings that do not start with `spark.`: remove {', '.join(others)} from `conf`"
        )


def driver_environment(
    request: SubmitRequest, directory: RunDirectory, conf_dir: Path, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The environment of the shim and its descendants; the variables of the run override all others.

    `inherited` is the permitted part of the worker's environment; the Spark of a pool wins over its
    SPARK_HOME. `conf_dir` is created if missing, and stays empty.
    """
    try:
        # Spark executes files in it, such as spark-env.sh; drivers of other users may read it.
        check_files(private_directory(conf_dir, mode=0o755))
    except UnsafeDirectory as error:
        raise SubmissionError(str(error)) from error
    own = {
        "PYSPARK_PYTHON": request.python,
        "PYSPARK_DRIVER_PYTHON": request.python,
        "SPARK_CONF_DIR": str(conf_dir),  # empty: the run directory holds all settings of the job
    }
    if "SPARK_LAUNCHER_OPTS" not in inherited:
        own["SPARK_LAUNCHER_OPTS"] = " ".join(LAUNCHER_FLAGS)  # for the JVM that only prints a command line
    if request.spark is not None:
        own["SPARK_HOME"] = request.spark.home
    elif "SPARK_HOME" not in inherited and (spark_home := installed_spark_home()):
        own["SPARK_HOME"] = str(spark_home)
    if is_local(request.target.master) and "SPARK_LOCAL_IP" not in inherited:
        own["SPARK_LOCAL_IP"] = _LOOPBACK  # nothing listens beyond this host
    names = {
        RUN_VARIABLE: request.run,
        INCARNATION_VARIABLE: request.incarnation,
        RUN_DIR_VARIABLE: str(directory.work),
    }
    return dict(inherited) | own | dict(request.environment) | names


def cluster_submit_environment(
    request: SubmitRequest,
    directory: RunDirectory,
    *java_options: str,
    conf_dir: Path,
    quick_start: QuickStart | None,
    passed_on: Sequence[str] = (),
    as_worker: bool = True,
) -> dict[str, str]:
    """The environment of a spark-submit that submits the driver to a cluster: a JVM of a few seconds.

    `java_options` are the orchestrator's options for this JVM; the user's options follow. With `as_worker`
    it acts with the credentials of the worker.
    """
    environment, options = _quick_jvm(
        request,
        directory,
        inherited=for_cluster_submit(passed_on) if as_worker else for_drivers(passed_on),
        conf={},  # `conf` is for the driver, which is another JVM
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
    """The environment of a JVM on this host and the orchestrator's options; `conf` has the user's options."""
    environment = driver_environment(
        request, directory, conf_dir if quick_start is None else quick_start.conf_dir(conf_dir), inherited
    )
    chosen = chosen_options(environment, conf)
    own = [*java_options, *quick_flags(flags, chosen)]
    if quick_start is not None:
        known = None if chosen is None else [*own, *chosen]
        own += quick_start.options(directory, environment, conf, known)
    return environment, own


def spark_submit_command(environment: Mapping[str, str]) -> list[str]:
    """The spark-submit of SPARK_HOME; raises SubmissionError if it or Java is missing."""
    if not (spark_home := environment.get("SPARK_HOME")):
        raise SubmissionError("no Spark: install pyspark or set SPARK_HOME")
    program = Path(spark_home, "bin", "spark-submit")
    if not os.access(program, os.X_OK):
        raise SubmissionError(f"no Spark: {program} does not exist or is not executable; check SPARK_HOME")
    java_home = environment.get("JAVA_HOME")
    java = str(Path(java_home, "bin", "java")) if java_home else "java"
    if not shutil.which(java, path=environment.get("PATH")):
        raise SubmissionError(f"no Java: `{java}` does not exist; install Java 17 or later, or set JAVA_HOME")
    return [str(program)]


def is_local(master: str) -> bool:
    """Whether driver and executors all run on this host."""
    return master.startswith("local")


def quote_option(option: str) -> str:
    """One option, quoted for Spark's CommandBuilderUtils.parseOptionString."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
