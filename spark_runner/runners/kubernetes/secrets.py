"""The secrets that pods mount: the code of one version, and the plan of each submission.

A code secret is valid for one day; a later submission creates a new one. No driver starts with an old one,
so it is removed once no pod mounts it, whatever versions other workers run.
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
