"""A program that uses the library passes mypy --strict, with and without the plug-in of pydantic."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator

ROOT = Path(orchestrator.__file__).parents[1]
PAGE = ROOT / "docs" / "python-api.md"
ACCEPTED = """
from pathlib import Path
from orchestrator import (
    Callback, CheckpointUse, Client, Definition, Driver, Executor, JobUpdate, JobView, Kubernetes, Retry,
    Schedule, Spark, Standalone, Timeout, Tuning, Yarn, load_definition,
)

a: Definition = Definition(name="a", script="SELECT 1")
text: str = Definition(name="a", script=Path("a.sql")).script
Definition(name="a", python=Path("a.py"), arguments=["x", 1], labels={"a": 1}, retry={"attempts": 2})
Definition(
    name="a",
    jar="a.jar",
    main_class="A",
    spark=Spark(driver=Driver(memory="1g"), executor=Executor(cores=2), yarn=Yarn(queue="q")),
    timeout=Timeout(run=60.0),
    retry=Retry(submissions=2),
    callback=Callback(url="http://localhost"),
    schedule=Schedule(cron="0 6 * * *"),
    tuning=Tuning(mode="suggest"),
    checkpoint=CheckpointUse(start="fresh"),
)
Spark(standalone=Standalone(ui="a:1"), kubernetes=Kubernetes(namespace="a"))
b: Definition = load_definition(Path("a.yaml"), variables={"a": 1.5})


def use(client: Client) -> JobView:
    client.submit(b, job_id="a", variables={"a": "b"})
    client.submit(Path("a.sql"))
    updates: list[JobUpdate] = list(client.watch("a", timeout=1))
    print([str(update) for update in updates])
    return client.wait(client.submit("a.sql").id)
"""
REJECTED = (
    'Definition(script="SELECT 1")',
    'Definition(name="a", script=5)',
    'Definition(name="a", scirpt="SELECT 1")',
    'Definition(name="a", script="SELECT 1", retry=Timeout())',
    'x: int = Definition(name="a", script="SELECT 1").script',
    "client.submit(5)",
    'client.wait("a").nope',
)
HEAD = """
from orchestrator import Client, Definition, Timeout
client = Client.connect()
"""


def mypy(programs: dict[str, str], folder: Path, *, plugin: bool) -> list[tuple[str, int]]:
    """The files and lines of the errors in programs."""
    for name, text in programs.items():
        (folder / name).write_text(text, "utf-8")
    options = "plugins = pydantic.mypy\n" if plugin else ""
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = True\n{options}", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--follow-imports=silent", *programs],
        cwd=folder,
        env={"MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(folder / "cache"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = re.findall(r"^(\w+\.py):(\d+): error:", done.stdout, re.MULTILINE)
    return [(name, int(line)) for name, line in found if name in programs]


@pytest.mark.parametrize("plugin", [False, True])
def test_a_program_of_a_user_is_checked(tmp_path: Path, *, plugin: bool) -> None:
    page = "".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE))
    programs = {"accepted.py": ACCEPTED, "page.py": page, "rejected.py": HEAD + "\n".join(REJECTED)}
    first = HEAD.count("\n") + 1
    expected = {("rejected.py", line) for line in range(first, first + len(REJECTED))}
    assert set(mypy(programs, tmp_path, plugin=plugin)) == expected


def test_each_package_is_marked_as_typed() -> None:
    assert all(
        (ROOT / package / "py.typed").exists() for package in ("orchestrator", "queues", "spark_runner")
    )
