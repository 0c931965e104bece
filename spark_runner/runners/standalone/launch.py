"""The launch of a driver on a standalone cluster, in both deploy modes."""

import glob
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.protocol.process import INCARNATION_VARIABLE, RUN_DIR_VARIABLE, RUN_VARIABLE
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.files import content_file
from spark_runner.runners.launch import spark_properties
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_log import EXECUTOR, LOG4J2_PROPERTIES, TO_STDERR, with_log_layout
from spark_runner.runners.spark_settings import render_properties

_FOLDER = "stagings"


def note_staging(state_dir: Path, staging: Path) -> None:
    """Record a folder permanently; without effect if the state directory cannot be written."""
    if staging != state_dir:
        with suppress(SubmissionError):
            content_file(state_dir / _FOLDER, "staging", "", os.fsencode(staging))


def noted_stagings(state_dir: Path) -> Iterator[Path]:
    """The folders that processes with this state directory have submitted to."""
    with suppress(OSError):
        for note in (state_dir / _FOLDER).glob("staging-*"):
            yield _staging_of(note)


@cache
def _staging_of(note: Path) -> Path:
    """The folder in a note. Cached: the note's name has its hash, and callers ask several times a second."""
    return Path(os.fsdecode(note.read_bytes()))


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SUPERVISE = "spark.driver.supervise"
_FILE_LISTS = ("spark.jars", "spark.submit.pyFiles", "spark.files", "spark.archives")
# The options of the driver's own JVM. The node shows them to all its users, so they are kept to a minimum.
_JVM_PROPERTIES = (
    "spark.driver.memory",
    "spark.driver.cores",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    _JAVA_OPTIONS,
)


def application_name(name: str, run: str) -> str:
    """The name of an application at the master, by which `is_application_of` finds it."""
    return f"{name} {_mark(run)}"


def is_application_of(name: str, run: str) -> bool:
    """Whether an application with this name belongs to the run."""
    return name.endswith(_mark(run))


def with_core_limit(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings with a limit on cores that gives the requested number of executors.

    A standalone master has no limit on executors: without `spark.cores.max` an application takes all free
    cores.
    """
    instances = conf.get("spark.executor.instances", "")
    if not instances.isdecimal() or "spark.cores.max" in conf:
        return dict(conf)
    cores = conf.get("spark.executor.cores", "1")
    most = int(instances) * int(cores) if cores.isdecimal() else instances
    return {**conf, "spark.executor.cores": cores, "spark.cores.max": str(most)}


def driver_request(
    request: SubmitRequest, directory: RunDirectory, *, driver_main: Path, driver_zip: Path
) -> dict[str, Any]:
    """The request to the REST server; also writes the driver's files to the shared run directory.

    Raises RefusedSubmission, SubmissionError. Spark refuses Python programs in cluster mode. The main class
    is therefore Spark's own SparkSubmit, which runs the program in client mode on the node.
    """
    if request.conf.get(_SUPERVISE, "false") != "false":
        raise RefusedSubmission(
            f"{_SUPERVISE} would restart user code within one attempt; use `retry` instead"
        )
    properties = spark_properties(request, directory)
    properties.pop(_JAVA_OPTIONS)  # scratch files belong on the node's own disks
    log4j_uri = directory.write("log4j2.properties", LOG4J2_PROPERTIES).as_uri()  # no blanks, no quotes
    executors = directory.write("log4j2-executors.properties", TO_STDERR).as_uri()
    properties |= with_log_layout(request.conf, executors, EXECUTOR)
    try:
        properties |= {
            name: ",".join(_copied_for_nodes(properties[name], directory))
            for name in _FILE_LISTS
            if name in properties
        }
    except OSError as error:
        raise SubmissionError(
            f"{error.filename} could not be copied for the nodes: {error.strerror}"
        ) from error
    py_files = "spark.submit.pyFiles"
    properties[py_files] = ",".join(filter(None, (str(driver_zip), properties.get(py_files, ""))))
    arguments = ["--master", request.target.master, "--deploy-mode", "client", "--name", request.name]
    arguments += [
        "--properties-file",
        str(directory.write("spark.properties", render_properties(properties))),
    ]
    program = directory.write("driver_main.py", driver_main.read_text(encoding="utf-8"))
    jvm = {name: properties[name] for name in _JVM_PROPERTIES if name in properties}
    return {
        "action": "CreateSubmissionRequest",
        "clientSparkVersion": "4.0.0",
        "appResource": "",
        "mainClass": "org.apache.spark.deploy.SparkSubmit",
        "appArgs": [*arguments, str(program), str(directory.path / "plan.json")],
        "environmentVariables": {
            **request.environment,
            RUN_VARIABLE: request.run,
            INCARNATION_VARIABLE: request.incarnation,
            RUN_DIR_VARIABLE: str(directory.path),
        },
        "sparkProperties": {
            **jvm,
            **with_log_layout(request.conf, log4j_uri, _JAVA_OPTIONS),
            "spark.app.name": request.name,
            "spark.master": request.target.master,
            "spark.submit.deployMode": "cluster",
            _SUPERVISE: "false",
        },
    }


def _mark(run: str) -> str:
    return f"orch:{run}"


def _copied_for_nodes(names: str, directory: RunDirectory) -> Iterator[str]:
    """The items of a list, with copies in the run directory for files of this host; raises OSError."""
    folder = directory.path / "files"
    for name in filter(None, names.split(",")):
        path, mark, alias = name.partition("#")
        if ":" in path:  # a URL that the nodes fetch themselves
            yield name
            continue
        folder.mkdir(mode=0o700, exist_ok=True)
        for found in sorted(glob.glob(path)) or [path]:  # noqa: PTH207 - absolute patterns too
            yield f"{shutil.copy2(found, folder)}{mark}{alias}"
