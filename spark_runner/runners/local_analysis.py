"""Analyses one script with a local Spark of its own: a child process that ends with the command.

The child and its JVM form a process group, which this module ends in every case. If this process is killed,
the kernel ends the child, and the JVM follows because its standard input is closed.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.text import shortened
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.installation import installed_spark_home
from spark_runner.runners.launch import (
    quote_option,
    refuse_other_settings,
    spark_submit_command,
)
from spark_runner.runners.spark_settings import (
    SHORT_JOB_FLAGS,
    chosen_options,
    for_drivers,
    quick_flags,
    render_properties,
)
from spark_runner.sql.text.errors import SqlError

_CHILD = Path(__file__).parents[1] / "driver" / "analysis_main.py"
_MAX_CORES = 2  # the work is to start Spark, not to compute
_LOOPBACK = "127.0.0.1"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_MAX_LOG_CHARACTERS = 2_000  # of the end of the log, in the error about a child without an answer
_REQUEST, _ANSWER, _LOG = "request.json", "answer.json", "log"
_LOG4J2 = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex{5}
"""


class AnalysisFailed(SparkRunnerError):
    """The local Spark stopped without a result; its last log lines say why."""


def analyse(
    request: Mapping[str, Any],
    *,
    conf: Mapping[str, str],
    archives: ClassArchives | None = None,
    passed_on: Sequence[str] = (),
) -> dict[str, Any]:
    """The answer of `spark_runner.driver.analysis_main` to a request.

    `conf` are the Spark properties of the definition; the master is always local. `passed_on` are variables
    that the operator adds to the environment of drivers. Raises SqlError with all errors of the script,
    AnalysisFailed, and SubmissionError without Spark or Java.
    """
    refuse_other_settings(conf)
    with tempfile.TemporaryDirectory(prefix="orchestrator-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        environment = _environment(folder, conf, archives, passed_on)
        spark_submit_command(environment)  # Spark and Java exist
        (folder / _REQUEST).write_text(json.dumps(request), encoding="utf-8")
        _run(folder, environment)
        return _answer(folder)


def _run(folder: Path, environment: Mapping[str, str]) -> None:
    with (folder / _LOG).open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-P", str(_CHILD), str(folder), str(os.getpid())],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a Ctrl-C of the terminal reaches this process alone
        )
    try:
        child.wait()
    finally:
        # Nothing of it is worth waiting for: its files are in the folder.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _answer(folder: Path) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads((folder / _ANSWER).read_text("utf-8"))
    except FileNotFoundError:
        log = (folder / _LOG).read_text("utf-8", errors="replace").strip()
        shown = shortened(log[-_MAX_LOG_CHARACTERS:], _MAX_LOG_CHARACTERS)
        raise AnalysisFailed(
            f"the local Spark ended without an answer; its log ends with:\n{shown}"
        ) from None
    if errors := [SqlError(**error) for error in answer.get("refused", ())]:
        first, *others = errors
        first.others = tuple(others)
        raise first
    if failure := answer.get("failure"):
        raise AnalysisFailed(str(failure))
    return answer


def _environment(
    folder: Path, conf: Mapping[str, str], archives: ClassArchives | None, passed_on: Sequence[str]
) -> dict[str, str]:
    empty = folder / "conf"
    empty.mkdir()
    environment = for_drivers(passed_on)
    if "SPARK_HOME" not in environment and (home := installed_spark_home()):
        environment["SPARK_HOME"] = str(home)
    conf_dir = empty if archives is None else archives.conf_dir(empty)
    root = str(Path(__file__).parents[2])
    environment |= {
        "PYTHONPATH": os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH", "")))),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf_dir),
        "SPARK_LOCAL_IP": _LOOPBACK,
    }
    chosen = chosen_options(environment, conf)
    flags = quick_flags(SHORT_JOB_FLAGS, chosen)
    if archives is not None:
        known = None if chosen is None else [*flags, *chosen]
        flags += archives.existing(environment, conf, known)
    properties = folder / "spark.properties"
    properties.write_text(render_properties(_properties(folder, conf, flags)), encoding="utf-8")
    cores = min(_MAX_CORES, os.cpu_count() or 1)
    arguments = ["--properties-file", str(properties), "--master", f"local[{cores}]", "pyspark-shell"]
    return environment | {"PYSPARK_SUBMIT_ARGS": shlex.join(arguments)}


def _properties(folder: Path, conf: Mapping[str, str], flags: Sequence[str]) -> dict[str, str]:
    scratch = folder / "scratch"
    scratch.mkdir()
    (folder / "log4j2.properties").write_text(_LOG4J2, encoding="utf-8")
    defaults = {
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.sql.shuffle.partitions": "2",
    }
    # Nobody but this process may reach the ports; the master and where it listens are not the user's here.
    own = {
        "spark.eventLog.enabled": "false",  # its directory may be that of a cluster
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
    }
    options = [
        *flags,
        f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}",
        f"-Djava.io.tmpdir={scratch}",
        f"-Dderby.system.home={folder}",
        f"-XX:ErrorFile={folder}/hs_err_pid%p.log",
    ]
    java = " ".join([*map(quote_option, options), conf.get(_JAVA_OPTIONS, "")]).rstrip()
    kept = {
        name: value for name, value in conf.items() if name not in {"spark.master", "spark.submit.deployMode"}
    }
    return defaults | kept | own | {_JAVA_OPTIONS: java}
