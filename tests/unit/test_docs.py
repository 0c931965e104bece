"""What the documents name is there."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
QUEUES = PROJECT / "docs" / "queues.md"


@pytest.mark.parametrize("name", ["queues.md", "logs.md"])
def test_each_test_that_is_named_as_a_proof_exists(name: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (PROJECT / "docs" / name).read_text("utf-8")))
    sources = "\n".join(path.read_text("utf-8") for path in (PROJECT / "tests").rglob("test_*.py"))
    assert named
    assert named <= set(re.findall(r"def (test_\w+)\(", sources))


def test_the_example_in_the_document_is_the_one_that_runs() -> None:
    shown = QUEUES.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    assert shown in (PROJECT / "examples" / "queues_alone.py").read_text("utf-8")
