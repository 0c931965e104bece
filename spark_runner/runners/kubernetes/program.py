"""The program in a driver's pod: the Python driver, or for jars a driver with the same rules in Java only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_runner import exit_codes
from spark_runner.failures import PATTERNS
from spark_runner.run_plan import PlanOutline, for_jar_driver
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.driver_zip import driver_zip
from spark_runner.runners.kubernetes.secrets import code_secret, plan_secret
from spark_runner.runners.log_layout import TO_STDERR

CODE = "/opt/orchestrator/code"  # in each pod
PLAN = "/opt/orchestrator/plan"  # in each pod of a driver
LAYOUT = "log4j2.properties"  # in CODE

_JAR_DRIVER = Path(__file__).with_name("JarDriver.java")
_PATHS = "spark.executorEnv.PYTHONPATH"


@dataclass(frozen=True, slots=True)
class PodProgram:
    """The arguments of spark-submit for one program, and the secrets that hold the program."""

    resource: str
    arguments: tuple[str, ...]
    code: Mapping[str, Any]  # the secret that is mounted at CODE
    plan: Mapping[str, Any]  # the secret that is mounted at PLAN
    main_class: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def program_of(request: SubmitRequest, *, folder: Path, driver_main: Path) -> PodProgram:
    """The program of a submission; raises SubmissionError. `folder` holds the zip of this version."""
    if PlanOutline.of(request.plan).runs_jar and request.target.options.get("driver") != "python":
        return _in_java(request)
    return _in_python(request, folder, driver_main)


def _in_python(request: SubmitRequest, folder: Path, driver_main: Path) -> PodProgram:
    code = code_secret(
        {
            "driver.zip": driver_zip(folder).read_bytes(),
            "driver_main.py": driver_main.read_bytes(),
            LAYOUT: TO_STDERR.encode(),
        }
    )
    package = f"{CODE}/driver.zip"
    own = {
        "spark.submit.pyFiles": _joined(f"local://{package}", request.conf.get("spark.submit.pyFiles"), ","),
        # Spark assumes that a `local:` file is on every node and sends it to no executor; CODE provides it.
        _PATHS: _joined(package, request.conf.get(_PATHS), ":"),
    }
    plan = plan_secret(request, request.plan)
    return PodProgram(f"local://{CODE}/driver_main.py", (f"{PLAN}/plan.json",), code, plan, properties=own)


def _in_java(request: SubmitRequest) -> PodProgram:
    known = {
        **PATTERNS,
        "no_contact": exit_codes.NO_CONTACT,
        "superseded": exit_codes.SUPERSEDED,
        "killed": exit_codes.KILLED,
    }
    source = _JAR_DRIVER.read_bytes()
    return PodProgram(
        "spark-internal",  # a class that the image contains; the jar of the job is in spark.jars
        (f"{CODE}/{_JAR_DRIVER.name}", f"orchestrator.{_JAR_DRIVER.stem}", f"{PLAN}/plan.json"),
        code_secret({_JAR_DRIVER.name: source, LAYOUT: TO_STDERR.encode()}),
        plan_secret(request, for_jar_driver(request.plan, known)),
        main_class="org.codehaus.janino.SimpleCompiler",
    )


def _joined(own: str, given: str | None, mark: str) -> str:
    return f"{own}{mark}{given}" if given else own
