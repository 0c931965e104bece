"""How a driver comes to a cluster: its names, and how spark-submit is called for it."""

from collections.abc import Sequence
from pathlib import Path

from spark_runner.errors import RefusedSubmission
from spark_runner.process import TERMINATION_LOG_VARIABLE
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.kubernetes.pod import INCARNATION_LABEL, RUN_LABEL
from spark_runner.runners.kubernetes.program import CODE, LAYOUT, PLAN, PodProgram
from spark_runner.runners.launch import Launch, QuickStart, hand_over_environment, submit_arguments
from spark_runner.runners.log_layout import DRIVER, EXECUTOR, laid_out
from spark_runner.runners.properties import render_properties
from spark_runner.runners.run_directory import RunDirectory

TERMINATION_LOG = "/dev/termination-log"
"""What a container writes there becomes part of its status, which outlives the container."""

_ACCOUNT = "spark.kubernetes.authenticate.driver.serviceAccountName"
_OURS = {
    "spark.kubernetes.namespace": "spark.kubernetes.namespace",
    "spark.kubernetes.context": "spark.kubernetes.context",
    "spark.kubernetes.driver.podTemplateFile": "spark.kubernetes.pod_template",
    "spark.kubernetes.executor.podTemplateFile": "spark.kubernetes.pod_template",
    "spark.kubernetes.driver.pod.name": "",
    "spark.kubernetes.submission.waitAppCompletion": "",
}
"""Properties that a definition cannot set, and the field of a definition that does it, where there is one."""


def pod_name(run: str) -> str:
    """The same for each submission of a run: Kubernetes itself refuses the second while one is there."""
    return f"orch-{run}-driver"


def launch_pod(
    request: SubmitRequest,
    program: PodProgram,
    directory: RunDirectory,
    namespace: str,
    *,
    context: str,
    conf_dir: Path,
    quick_start: QuickStart | None = None,
    passed_on: Sequence[str] = (),
) -> Launch:
    """How spark-submit is called, with this context of the kubeconfig; raises RefusedSubmission."""
    properties = _properties(request, program, namespace, context)
    return Launch(
        submit_arguments(
            request,
            directory.write("spark.properties", render_properties(properties)),
            program.resource,
            *program.arguments,
            main_class=program.main_class,
        ),
        hand_over_environment(
            request, directory, conf_dir=conf_dir, quick_start=quick_start, passed_on=passed_on
        ),
    )


def _properties(request: SubmitRequest, program: PodProgram, namespace: str, context: str) -> dict[str, str]:
    conf, options = request.conf, request.target.options
    for name, field in _OURS.items():
        if name in conf:
            hint = f": say it by `{field}` of the definition" if field else ", which follows from the run"
            raise RefusedSubmission(f"`conf` cannot set {name}{hint}")
    image = options.get("image") or conf.get("spark.kubernetes.container.image")
    if not (image or "spark.kubernetes.driver.container.image" in conf):
        raise RefusedSubmission(
            "no image: say `spark.kubernetes.image`, one with Spark, and Python but for jars"
        )
    template = options.get("pod_template", "")
    if template and not Path(template).is_file():
        raise RefusedSubmission(f"pod_template {template} is not a file on the worker's host")
    ours = {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.context": context,
        "spark.kubernetes.container.image": image or "",
        _ACCOUNT: options.get("service_account") or conf.get(_ACCOUNT, ""),
        "spark.kubernetes.driver.podTemplateFile": template,
        "spark.kubernetes.executor.podTemplateFile": template,
        "spark.kubernetes.driver.pod.name": pod_name(request.run),
        # What comes after is seen at the API, by whichever worker has the job then.
        "spark.kubernetes.submission.waitAppCompletion": "false",
        **program.properties,
    }
    for part in ("driver", "executor"):
        ours[f"spark.kubernetes.{part}.label.{RUN_LABEL}"] = request.run
        ours[f"spark.kubernetes.{part}.label.{INCARNATION_LABEL}"] = request.incarnation
        ours[f"spark.kubernetes.{part}.secrets.{program.code['metadata']['name']}"] = CODE
    ours[f"spark.kubernetes.driver.secrets.{program.plan['metadata']['name']}"] = PLAN
    ours |= laid_out(conf, f"file:{CODE}/{LAYOUT}", DRIVER, EXECUTOR)
    ours[f"spark.kubernetes.driverEnv.{TERMINATION_LOG_VARIABLE}"] = TERMINATION_LOG
    for name, value in request.environment.items():
        ours[f"spark.kubernetes.driverEnv.{name}"] = value
    defaults = {"spark.ui.showConsoleProgress": "false"}  # bars have no place in a log
    return {name: value for name, value in (defaults | dict(conf) | ours).items() if value}
