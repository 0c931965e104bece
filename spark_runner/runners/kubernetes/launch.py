"""The launch of a driver on Kubernetes: names, the spark-submit for it, and the meaning of its output."""

import re
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from spark_runner.protocol import exit_codes
from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.protocol.process import TERMINATION_LOG_VARIABLE
from spark_runner.runners.base import Failure, RunState, Submission, SubmitRequest
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.pod import INCARNATION_LABEL, RUN_LABEL
from spark_runner.runners.kubernetes.program import CODE, LAYOUT, PLAN, PodProgram, program_of
from spark_runner.runners.launch import (
    Launch,
    QuickStart,
    cluster_submit_environment,
    submit_arguments,
)
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_log import DRIVER, EXECUTOR, with_log_layout
from spark_runner.runners.spark_settings import MEMORY_MEASURES, PAGES_OFF, render_properties
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.submission_state import tail

_REFUSAL = re.compile(
    r"Message: (?P<message>.{1,2000}?)\. Received status: Status\(.*?code=(?P<code>\d+)", re.DOTALL
)
_REASON = re.compile(r"[(, ]reason=(?P<reason>[A-Z]\w+)")
_EXCEPTION = re.compile(r"^(?:Exception in thread \"[^\"]*\" |Caused by: )(?P<words>\S.*)$", re.MULTILINE)
_UNREACHABLE = re.compile(
    r"ConnectException|UnknownHostException|SocketTimeout|ConnectTimeout|No route to host"
)
_PASSING_CODES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT})


def submission_of_launcher(launcher: Submission, directory: RunDirectory) -> Submission:
    """The submission of a spark-submit whose pod is not listed; a pod that had started may still run."""
    run, incarnation = launcher.run, launcher.incarnation
    if launcher.state is RunState.RUNNING:
        return Submission(run, incarnation, RunState.RUNNING)
    launcher = replace(launcher, is_end_observed=False)
    if launcher.state is not RunState.EXITED or directory.is_kill_requested():
        return launcher
    if launcher.exit_code == 0:
        return replace(launcher, state=RunState.GONE, exit_code=None, detail="its pod is not listed")
    failure = launcher.failure or _failure(tail(directory.path / "stderr.log"))
    if failure.type == "AlreadyExists":
        detail = f"not submitted a second time: {failure.message}"
        return replace(launcher, exit_code=exit_codes.SUPERSEDED, failure=None, detail=detail)
    return replace(launcher, failure=failure)


def _failure(text: str) -> Failure:
    if refused := _REFUSAL.search(text):
        reason = _REASON.search(text, refused.start())
        code, message = int(refused["code"]), refused["message"].strip()
        is_busy = code >= HTTPStatus.INTERNAL_SERVER_ERROR or code in _PASSING_CODES
        passing = is_busy or "exceeded quota" in message
        kind = reason["reason"] if reason else f"HTTP {code}"
        return Failure("submission", kind, f"Kubernetes refused the driver: {message}", is_passing=passing)
    found = [match["words"].strip() for match in _EXCEPTION.finditer(text)]
    if _UNREACHABLE.search(text):
        message = f"Kubernetes is unreachable: {found[-1] if found else 'no connection'}"
        return Failure("submission", "Unreachable", message, is_passing=True)
    last = found or [line for line in text.splitlines() if line.strip()] or ["it printed no reason"]
    return Failure("submission", "SparkSubmit", f"spark-submit failed: {last[-1]}"[:2000])


TERMINATION_LOG = "/dev/termination-log"
"""A container's text in this file becomes part of its status, which outlives the container."""

_ACCOUNT = "spark.kubernetes.authenticate.driver.serviceAccountName"
_RESERVED = {
    "spark.kubernetes.namespace": "spark.kubernetes.namespace",
    "spark.kubernetes.context": "spark.kubernetes.context",
    "spark.kubernetes.driver.podTemplateFile": "spark.kubernetes.pod_template",
    "spark.kubernetes.executor.podTemplateFile": "spark.kubernetes.pod_template",
    "spark.kubernetes.driver.pod.name": "",
    "spark.kubernetes.submission.waitAppCompletion": "",
}
"""Properties that `conf` cannot set, with the field of a definition that sets them, if any."""


class PodLauncher:
    """Starts the spark-submit that creates a driver's pod, after the secrets that the pod mounts."""

    def __init__(
        self, submits: SparkSubmits, api: KubernetesApi, namespace: str, *, driver_main: Path
    ) -> None:
        self._submits = submits
        self._api = api
        self._namespace = namespace
        self._driver_main = driver_main

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a spark-submit for this driver; raises SubmissionError."""
        credentials = self._api.credentials
        credentials.check(self._api.url)  # again: spark-submit rereads the files, which may have changed
        context = credentials.named_context()
        state_dir = self._submits.state_dir
        program = program_of(request, folder=state_dir / "code", driver_main=self._driver_main)

        def prepare(directory: RunDirectory) -> Launch:
            launch = launch_pod(
                request,
                program,
                directory,
                self._namespace,
                context=context,
                conf_dir=state_dir / "spark-conf",
                quick_start=self._submits.quick_start,
                passed_on=self._submits.passed_on,
            )
            try:
                # The last step before the start: an earlier refusal leaves no secret behind.
                for secret in (*program.code.values(), program.plan):
                    self._api.create_secret(self._namespace, secret)
            except KubernetesError as error:
                raise SubmissionError(str(error)) from error
            return launch

        return self._submits.start(request, prepare)


def pod_name(run: str) -> str:
    """The pod's name, equal for all submissions of a run: Kubernetes refuses a second while one exists."""
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
    """The call of spark-submit with this context of the kubeconfig; raises RefusedSubmission."""
    properties = _properties(request, program, namespace, context)
    return Launch(
        submit_arguments(
            request,
            directory.write("spark.properties", render_properties(properties)),
            program.resource,
            *program.arguments,
            main_class=program.main_class,
        ),
        cluster_submit_environment(
            request, directory, conf_dir=conf_dir, quick_start=quick_start, passed_on=passed_on
        ),
    )


def _properties(request: SubmitRequest, program: PodProgram, namespace: str, context: str) -> dict[str, str]:
    conf, options = request.conf, request.target.options
    for name, field in _RESERVED.items():
        if name in conf:
            hint = f": set `{field}` in the definition" if field else ", which follows from the run"
            raise RefusedSubmission(f"`conf` cannot set {name}{hint}")
    image = options.get("image") or conf.get("spark.kubernetes.container.image")
    if not (image or "spark.kubernetes.driver.container.image" in conf):
        raise RefusedSubmission(
            "no image: set `spark.kubernetes.image` to one with Spark, and with Python for all but jars"
        )
    template = options.get("pod_template", "")
    if template and not Path(template).is_file():
        raise RefusedSubmission(f"pod_template {template} is not a file on the worker's host")
    own = {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.context": context,
        "spark.kubernetes.container.image": image or "",
        _ACCOUNT: options.get("service_account") or conf.get(_ACCOUNT, ""),
        "spark.kubernetes.driver.podTemplateFile": template,
        "spark.kubernetes.executor.podTemplateFile": template,
        "spark.kubernetes.driver.pod.name": pod_name(request.run),
        # The API shows the rest to whichever worker then has the job.
        "spark.kubernetes.submission.waitAppCompletion": "false",
        **program.properties,
    }
    for part in ("driver", "executor"):
        own[f"spark.kubernetes.{part}.label.{RUN_LABEL}"] = request.run
        own[f"spark.kubernetes.{part}.label.{INCARNATION_LABEL}"] = request.incarnation
        for path, secret in program.code.items():
            own[f"spark.kubernetes.{part}.secrets.{secret['metadata']['name']}"] = path
    own[f"spark.kubernetes.driver.secrets.{program.plan['metadata']['name']}"] = PLAN
    own |= with_log_layout(conf, f"file:{CODE}/{LAYOUT}", DRIVER, EXECUTOR)
    own[f"spark.kubernetes.driverEnv.{TERMINATION_LOG_VARIABLE}"] = TERMINATION_LOG
    for name, value in request.environment.items():
        own[f"spark.kubernetes.driverEnv.{name}"] = value
    # Progress bars do not belong in a log.
    defaults = {**PAGES_OFF, **MEMORY_MEASURES, "spark.ui.showConsoleProgress": "false"}
    return {name: value for name, value in (defaults | dict(conf) | own).items() if value}
