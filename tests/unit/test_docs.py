"""Tests, files and examples that the documents name exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from docs.fields import all_models, meaning
from docs.generated import Part, Picture, parts
from orchestrator.config.settings import Settings
from orchestrator.model.definition import Definition

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


@pytest.mark.parametrize("part", list(parts()), ids=lambda part: Path(part.page).name)
def test_what_is_made_from_the_code_is_up_to_date(part: Part | Picture) -> None:
    text = part.path.read_text("utf-8")
    assert part.render(text) == text, "run python -m docs"


@pytest.mark.parametrize("model", [*all_models(Definition), *all_models(Settings)])
def test_each_field_has_a_meaning(model: type[BaseModel]) -> None:
    assert not [name for name, field in model.model_fields.items() if not meaning(field)]


def test_the_plots_of_the_tuning_are_those_of_its_law(tmp_path: Path) -> None:
    script = PROJECT / "benchmarks" / "tuning_plot.py"
    subprocess.run([sys.executable, str(script), "--folder", str(tmp_path)], check=True)
    made = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in (PROJECT / "docs" / "tuning").iterdir()}
    assert made == kept, "run benchmarks/tuning_plot.py"
