"""How a driver comes to a cluster: its secrets, its names, and how spark-submit is called for it."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_runner.errors import RefusedSubmission
from spark_runner.process import TERMINATION_LOG_VARIABLE
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.driver_zip import driver_zip
from spark_runner.runners.kubernetes.pod import INCARNATION_LABEL, RUN_LABEL
from spark_runner.runners.launch import Launch, driver_environment, submit_arguments
from spark_runner.runners.properties import render_properties
from spark_runner.runners.run_directory import RunDirectory

CODE = "/opt/orchestrator/code"  # in each pod of a driver
PLAN = "/opt/orchestrator/plan"
TERMINATION_LOG = "/dev/termination-log"
"""What a container writes there becomes part of its status, which outlives the container."""

_OURS = {
    "spark.kubernetes.namespace": "spark.kubernetes.namespace",
    "spark.kubernetes.context": "spark.kubernetes.context",
    "spark.kubernetes.driver.pod.name": "",
    "spark.kubernetes.submission.waitAppCompletion": "",
}
"""Properties that a definition cannot set, and the field of a definition that does it, where there is one."""


def pod_name(run: str) -> str:
    """The same for each submission of a run: Kubernetes itself refuses the second while one is there."""
    return f"orch-{run}-driver"


def code_secret(code: Path, driver_main: Path) -> dict[str, Any]:
    """What every driver of this version runs; one for all of them, as its name tells its contents."""
    contents = {"driver.zip": code.read_bytes(), "driver_main.py": driver_main.read_bytes()}
    return _secret(f"orch-{code.stem}", contents, {}) | {"immutable": True}


def plan_secret(request: SubmitRequest) -> dict[str, Any]:
    """What this driver is to do: it may hold what is nobody else's business."""
    contents = {"plan.json": json.dumps(request.plan).encode()}
    labels = {RUN_LABEL: request.run, INCARNATION_LABEL: request.incarnation}
    return _secret(f"orch-plan-{request.incarnation}", contents, labels)


def launch_pod(
    request: SubmitRequest,
    directory: RunDirectory,
    namespace: str,
    conf_dir: Path,
    secrets: Mapping[str, str],
) -> Launch:
    """How spark-submit is called; raises RefusedSubmission. `secrets` by name: where the driver sees them."""
    properties = _properties(request, namespace, secrets)
    return Launch(
        submit_arguments(
            request,
            directory.write("spark.properties", render_properties(properties)),
            f"local://{CODE}/driver_main.py",
            f"{PLAN}/plan.json",
        ),
        driver_environment(request, directory, conf_dir),
    )


def version_zip(state_dir: Path) -> Path:
    """The zip of this version; raises SubmissionError."""
    return driver_zip(state_dir / "code")


def _properties(request: SubmitRequest, namespace: str, secrets: Mapping[str, str]) -> dict[str, str]:
    conf, options = request.conf, request.target.options
    for name, field in _OURS.items():
        if name in conf:
            hint = f": say it by `{field}` of the definition" if field else ", which follows from the run"
            raise RefusedSubmission(f"`conf` cannot set {name}{hint}")
    image = options.get("image") or conf.get("spark.kubernetes.container.image")
    if not (image or "spark.kubernetes.driver.container.image" in conf):
        raise RefusedSubmission("no image: say `spark.kubernetes.image`, one with Java, Python and PySpark")
    template = options.get("pod_template", "")
    if template and not Path(template).is_file():
        raise RefusedSubmission(f"pod_template {template} is not a file on the worker's host")
    ours = {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.context": options.get("context", ""),
        "spark.kubernetes.container.image": image or "",
        "spark.kubernetes.authenticate.driver.serviceAccountName": options.get("service_account", ""),
        "spark.kubernetes.driver.podTemplateFile": template,
        "spark.kubernetes.executor.podTemplateFile": template,
        "spark.kubernetes.driver.pod.name": pod_name(request.run),
        # What comes after is seen at the API, by whichever worker has the job then.
        "spark.kubernetes.submission.waitAppCompletion": "false",
        "spark.submit.pyFiles": ",".join(
            filter(None, (f"local://{CODE}/driver.zip", conf.get("spark.submit.pyFiles", "")))
        ),
    }
    for part in ("driver", "executor"):
        ours[f"spark.kubernetes.{part}.label.{RUN_LABEL}"] = request.run
        ours[f"spark.kubernetes.{part}.label.{INCARNATION_LABEL}"] = request.incarnation
    for name, path in secrets.items():
        ours[f"spark.kubernetes.driver.secrets.{name}"] = path
    ours[f"spark.kubernetes.driverEnv.{TERMINATION_LOG_VARIABLE}"] = TERMINATION_LOG
    for name, value in request.environment.items():
        ours[f"spark.kubernetes.driverEnv.{name}"] = value
    defaults = {"spark.ui.showConsoleProgress": "false"}  # bars have no place in a log
    return {name: value for name, value in (defaults | dict(conf) | ours).items() if value}


def _secret(name: str, contents: Mapping[str, bytes], labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "orchestrator", **labels}},
        "data": {key: base64.b64encode(value).decode() for key, value in contents.items()},
    }
