import subprocess
import sys

import pytest

# Modules that `job submit` of a SQL script does not need; each takes a large part of its time to load.
HEAVY = {
    "asyncio",
    "elasticsearch",
    "loguru",
    "orchestrator.admin.job_changes",
    "orchestrator.client.client",
    "orchestrator.config.live_limits",
    "orchestrator.admission.guard",
    "orchestrator.handlers",
    "orchestrator.schedules",
    "orchestrator.compose",
    "orchestrator.worker.worker",
    "psutil",
    "pyarrow",
    "pydantic_settings",
    "pyspark",
    "queues.claims.claimer",
    "queues.embedded",
    "queues.queue_set",
    "rich",
    "spark_runner.runners.local",
    "yaml",
}
SUBMIT = "orchestrator.cli.job.submit"


def loaded(program: str) -> set[str]:
    program += "; import sys; print(); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ended.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "program",
    [
        f"import {SUBMIT}",
        "from orchestrator.cli.app import run_app; assert run_app(['job', 'submit', '--help']) == 0",
    ],
)
def test_job_submit_loads_only_what_it_needs(program: str) -> None:
    modules = loaded(program)
    assert SUBMIT in modules
    assert not modules & HEAVY


def test_the_help_of_a_group_loads_none_of_its_commands() -> None:
    modules = loaded("from orchestrator.cli.app import run_app; assert run_app(['job', '--help']) == 0")
    assert not {name for name in modules if name.startswith("orchestrator.cli.job.")}


@pytest.mark.parametrize(("command", "left_out"), [("submit", True), ("logs", False)])
def test_plugins_of_pydantic_are_left_out_of_quick_commands_alone(command: str, left_out: bool) -> None:
    program = (
        "import os; from orchestrator.cli.app import run_app; "
        f"run_app(['job', '{command}', '--help']); print('PYDANTIC_DISABLE_PLUGINS' in os.environ)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == str(left_out)
