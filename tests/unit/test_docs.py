"""Tests, files and examples that the documents name exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
QUEUES = PROJECT / "docs" / "queues.md"


DOCS = sorted(str(path.relative_to(PROJECT / "docs")) for path in (PROJECT / "docs").rglob("*.md"))
REVIEW = "## What was removed"
"""Names tests that are gone."""


@pytest.mark.parametrize("name", DOCS)
def test_each_test_that_is_named_as_a_proof_exists(name: str) -> None:
    text = (PROJECT / "docs" / name).read_text("utf-8").partition(REVIEW)[0]
    named = {*re.findall(r"`(test_\w+)`", text), *re.findall(r"::(test_\w+)\b(?!\.)", text)}
    files = set(re.findall(r"\b(test_\w+\.py)\b", text))
    paths = list((PROJECT / "tests").rglob("test_*.py"))
    sources = "\n".join(path.read_text("utf-8") for path in paths)
    assert named or name not in {"queues.md", "logs.md", "testing.md"}
    assert named <= set(re.findall(r"def (test_\w+)\(", sources))
    assert files <= {path.name for path in paths}


def test_the_example_in_the_document_is_the_one_that_runs() -> None:
    shown = QUEUES.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    assert shown in (PROJECT / "examples" / "queues_alone.py").read_text("utf-8")


def test_the_picture_of_the_layers_is_that_of_the_contracts() -> None:
    drawn = subprocess.run([sys.executable, str(PROJECT / "docs" / "make_layers.py"), "--check"], check=False)
    assert drawn.returncode == 0, "run docs/make_layers.py"
