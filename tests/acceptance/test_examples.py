import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_queues_work_alone_as_the_example_shows(zookeeper_hosts: str, zookeeper_root: str) -> None:
    program = (EXAMPLES / "queues_alone.py").read_text("utf-8").replace('"/shop"', repr(zookeeper_root))
    shown = subprocess.run(
        [sys.executable, "-c", program, zookeeper_hosts],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    assert sorted(line for line in shown if line.startswith("pack")) == [
        "pack: order-1 {'article': 'lamp'}",
        "pack: order-2 {'article': 'chair'}",
        "pack: order-3 {'article': 'chair'}",
    ]
    assert sum(line.startswith("ship") and "'packed': True" in line for line in shown) == 3


def test_the_example_is_as_short_as_the_documentation_says() -> None:
    program = (EXAMPLES / "queues_alone.py").read_text("utf-8")
    code = [line for line in program.partition('"""\n\n')[2].splitlines() if line.strip()]
    assert len(code) <= 20
