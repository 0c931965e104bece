"""The line of a notebook shows texts of drivers and users, and none of them becomes HTML."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.client.notebook import _Line, live_line
from orchestrator.client.updates import JobUpdate
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status

NOW = "2026-11-30T00:00:00.000Z"
FIELDS: dict[str, Any] = {"run_key": "k", "name": "n", "pool": "default", "attempt": 1, "times": {}}
FIELDS |= {"created": NOW, "updated": NOW, "started": None, "ended": None, "error": None}
JOB = JobView(id="job", queue=Queue.RUNNING, status=Status.RUNNING, **FIELDS)


def test_no_text_of_a_driver_becomes_html() -> None:
    line = _Line(JobUpdate(JOB, {"phase": "<script>alert('&')</script>\x1b[2J"}))
    html = line._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)" in html
    assert "\x1b" not in html + repr(line)
    assert repr(line).startswith("job  RUNNING: <script>")


@pytest.mark.parametrize("shell", [None, SimpleNamespace(), SimpleNamespace(kernel=None)])
def test_a_program_and_the_terminal_of_ipython_show_nothing(
    shell: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert live_line() is None
