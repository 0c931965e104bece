"""Tests, files and examples that the documents name exist."""

import re
import runpy
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


def test_the_table_of_gains_is_that_of_the_settings() -> None:
    page = (PROJECT / "docs" / "tuning-law.md").read_text("utf-8")
    assert runpy.run_path(str(PROJECT / "docs" / "make_tuning.py"))["render"](page) == page


def test_the_plots_of_the_tuning_are_those_of_its_law(tmp_path: Path) -> None:
    script = PROJECT / "benchmarks" / "tuning_plot.py"
    subprocess.run([sys.executable, str(script), "--folder", str(tmp_path)], check=True)
    made = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in (PROJECT / "docs" / "tuning").iterdir()}
    assert made == kept, "run benchmarks/tuning_plot.py"
