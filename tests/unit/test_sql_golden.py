"""Golden cases of the splitter and the compiler; `make golden` writes the expectations anew."""

from collections import Counter

import pytest

from tests.golden.cases import GOLDEN, Case, expected, read, scripts
from tests.golden.rendering import RENDERERS

CASES = [
    pytest.param(kind, case, expected(path).get(case.name), id=f"{kind}-{path.stem}-{case.name}")
    for kind in RENDERERS
    for path in scripts(kind)
    for case in read(path)
]


@pytest.mark.parametrize(("kind", "case", "wanted"), CASES)
def test_a_script_gives_what_was_reviewed(kind: str, case: Case, wanted: str | None) -> None:
    assert "\n".join(RENDERERS[kind](case)) == wanted


def test_each_expectation_belongs_to_one_case() -> None:
    for kind in RENDERERS:
        for path in scripts(kind):
            names = [case.name for case in read(path)]
            assert [name for name, times in Counter(names).items() if times > 1] == []
            assert list(expected(path)) == names
    assert {path.with_suffix(".sql") for path in GOLDEN.glob("*/*.txt")} == {*GOLDEN.glob("*/*.sql")}


def test_there_are_as_many_cases_as_the_language_needs() -> None:
    assert len(CASES) >= 400
