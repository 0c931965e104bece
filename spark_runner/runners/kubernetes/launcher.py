"""The result of the spark-submit that submits a driver to Kubernetes, read from its exit code and stderr."""

import re
from dataclasses import replace
from http import HTTPStatus

from spark_runner import exit_codes
from spark_runner.runners.base import Failure, RunState, Submission
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.start_words import tail

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
