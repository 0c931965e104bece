"""What travels to pods in secrets: the code of a version of ours, and the plan of each submission.

A secret with code is for one day: who submits later makes another one. So an old one is never begun with,
and goes when no pod names it, whatever versions other workers have.
"""

import base64
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.content_file import content_name
from spark_runner.runners.kubernetes.pod import INCARNATION_LABEL, RUN_LABEL

CODE_LABEL = "orchestrator-code"
"""The name of the secret once more: labels can be selected by."""

DAY_LABEL = "orchestrator-day"
_DAY_SECONDS = 86_400
_CLOCK_DAYS = 1
"""Clocks of workers may differ, and a spark-submit takes its time: but less than so much."""


def code_secret(contents: Mapping[str, bytes]) -> dict[str, Any]:
    """What every driver of a version that is submitted today runs; its name tells both."""
    day = _today()
    name = f"{content_name('orch-driver', *(contents[key] for key in sorted(contents)))}-{day}"
    return _secret(name, contents, {CODE_LABEL: name, DAY_LABEL: str(day)}) | {"immutable": True}


def plan_secret(request: SubmitRequest, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What this driver is to do: it may hold what is nobody else's business."""
    contents = {"plan.json": json.dumps(plan).encode()}
    labels = {RUN_LABEL: request.run, INCARNATION_LABEL: request.incarnation}
    return _secret(f"orch-plan-{request.incarnation}", contents, labels)


def old_code_selector(in_use: Iterable[str]) -> str:
    """Selects the secrets with code of past days but for those `in_use`: names of secrets that pods have."""
    today = _today()
    days = ",".join(str(day) for day in range(today - _CLOCK_DAYS, today + _CLOCK_DAYS + 1))
    used = ",".join(sorted(name for name in set(in_use) if name.startswith("orch-driver-")))
    # Without the first part it would select whatever has no such label, which is everything else.
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
