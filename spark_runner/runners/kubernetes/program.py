"""The program of a driver's pod, and the secrets that carry our code and the plan to it.

A code secret is valid for one day; a later submission creates a new one. No driver starts with an old one,
so it is removed once no pod mounts it, whatever versions other workers run.
"""

import base64
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_runner.protocol import exit_codes
from spark_runner.protocol.errors import SubmissionError
from spark_runner.protocol.failures import PATTERNS
from spark_runner.protocol.run_plan import PlanOutline, for_jar_driver
from spark_runner.protocol.shortages import patterns_in_java
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.driver_zip import driver_zip, package_zip_bytes
from spark_runner.runners.files import content_name
from spark_runner.runners.kubernetes.pod import INCARNATION_LABEL, RUN_LABEL
from spark_runner.runners.spark_log import TO_STDERR

CODE_LABEL = "orchestrator-code"
"""Repeats the name of the secret: selectors work on labels only."""

DAY_LABEL = "orchestrator-day"
_DAY_SECONDS = 86_400
_CLOCK_DAYS = 1
"""An upper bound for the difference of workers' clocks plus the duration of a spark-submit."""


def code_secret(contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The code of every driver that this version submits today; the name holds the version and the day."""
    day = _today()
    name = f"{content_name('orch-driver', *(contents[key] for key in sorted(contents)))}-{day}"
    return _secret(name, contents, {CODE_LABEL: name, DAY_LABEL: str(day)}) | {"immutable": True}


def plan_secret(request: SubmitRequest, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of one driver, which may hold confidential values."""
    contents = {"plan.json": json.dumps(plan).encode()}
    labels = {RUN_LABEL: request.run, INCARNATION_LABEL: request.incarnation}
    return _secret(f"orch-plan-{request.incarnation}", contents, labels)


def old_code_selector(in_use: Iterable[str]) -> str:
    """A selector for the code secrets of past days, except `in_use`: the names of secrets that pods mount."""
    today = _today()
    days = ",".join(str(day) for day in range(today - _CLOCK_DAYS, today + _CLOCK_DAYS + 1))
    used = ",".join(sorted(name for name in set(in_use) if name.startswith("orch-driver-")))
    # Without the first part the selector would match every secret that lacks the label.
    return f"{DAY_LABEL},{DAY_LABEL} notin ({days})" + (f",{CODE_LABEL} notin ({used})" if used else "")


def _today() -> int:
    return int(time.time() // _DAY_SECONDS)


def _secret(name: str, contents: Mapping[str, bytes], labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "orchestrator", **labels}},
        "data": {key: base64.b64encode(value).decode() for key, value in contents.items()},
    }


CODE = "/opt/orchestrator/code"  # in each pod
_PACKAGES = "/opt/orchestrator/packages"  # likewise, with a folder for each package
_MAX_SECRET_BYTES = 1024 * 1024  # of all values in a secret: a limit of the API
PLAN = "/opt/orchestrator/plan"  # in each pod of a driver
LAYOUT = "log4j2.properties"  # in CODE

_JAR_DRIVER = Path(__file__).with_name("JarDriver.java")
_PATHS = "spark.executorEnv.PYTHONPATH"


@dataclass(frozen=True, slots=True)
class PodProgram:
    """The arguments of spark-submit for one program, and the secrets that hold the program."""

    resource: str
    arguments: tuple[str, ...]
    code: Mapping[str, Mapping[str, Any]]  # the secrets that all pods of the program mount, by their paths
    plan: Mapping[str, Any]  # the secret that is mounted at PLAN
    main_class: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def program_of(request: SubmitRequest, *, folder: Path, driver_main: Path) -> PodProgram:
    """The program of a submission; raises SubmissionError. `folder` holds the zip of this version."""
    if PlanOutline.of(request.plan).runs_jar and request.target.options.get("driver") != "python":
        return _in_java(request)
    return _in_python(request, folder, driver_main)


def _in_python(request: SubmitRequest, folder: Path, driver_main: Path) -> PodProgram:
    files = {
        "driver.zip": driver_zip(folder).read_bytes(),
        "driver_main.py": driver_main.read_bytes(),
        LAYOUT: TO_STDERR.encode(),
    }
    packages = _packages(request.python_packages)
    code = {path: code_secret(contents) for path, contents in {CODE: files, **packages}.items()}
    zips = [f"{CODE}/driver.zip", *(f"{path}/{name}" for path, names in packages.items() for name in names)]
    pyfiles = ",".join(f"local://{each}" for each in zips)
    own = {
        "spark.submit.pyFiles": _joined(pyfiles, request.conf.get("spark.submit.pyFiles"), ","),
        # Spark assumes that a `local:` file is on every node and sends it to no executor; secrets do.
        _PATHS: _joined(":".join(zips), request.conf.get(_PATHS), ":"),
    }
    plan = plan_secret(request, request.plan)
    return PodProgram(f"local://{CODE}/driver_main.py", (f"{PLAN}/plan.json",), code, plan, properties=own)


def _packages(names: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """The contents of one secret for each package, by its path in pods: all in one would be too large."""
    found = {}
    for name in names:
        if contents := package_zip_bytes(name):
            if len(contents) > _MAX_SECRET_BYTES:
                raise SubmissionError(
                    f"the Python package {name} of a connector or function has {len(contents):,} bytes in a"
                    f" zip, and a secret of Kubernetes holds {_MAX_SECRET_BYTES:,}; install it in the image,"
                    " and leave it out of `modules`"
                )
            found[f"{_PACKAGES}/{name}"] = {f"{name}.zip": contents}
    return found


def _in_java(request: SubmitRequest) -> PodProgram:
    known = {
        **PATTERNS,
        "short_of": patterns_in_java(),
        "no_contact": exit_codes.NO_CONTACT,
        "superseded": exit_codes.SUPERSEDED,
        "killed": exit_codes.KILLED,
    }
    source = _JAR_DRIVER.read_bytes()
    return PodProgram(
        "spark-internal",  # a class that the image contains; the jar of the job is in spark.jars
        (f"{CODE}/{_JAR_DRIVER.name}", f"orchestrator.{_JAR_DRIVER.stem}", f"{PLAN}/plan.json"),
        {CODE: code_secret({_JAR_DRIVER.name: source, LAYOUT: TO_STDERR.encode()})},
        plan_secret(request, for_jar_driver(request.plan, known)),
        main_class="org.codehaus.janino.SimpleCompiler",
    )


def _joined(own: str, given: str | None, mark: str) -> str:
    return f"{own}{mark}{given}" if given else own
