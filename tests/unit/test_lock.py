"""The lock agrees with pyproject.toml, is complete, and is installed where the tests run."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ASKED = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
EXTRAS = {
    name: [Requirement(text) for text in texts]
    for name, texts in PROJECT["project"]["optional-dependencies"].items()
}
BUILD = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
AUDIT = [
    Requirement(line)
    for line in (ROOT / "requirements" / "audit.in").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
LOCKS = {
    "run": ASKED,
    "image": [*ASKED, *EXTRAS["kubernetes"], *EXTRAS["sls"]],
    "test": [*ASKED, *EXTRAS["test"]],
    "build": BUILD,
    "audit": AUDIT,
}
# A version, perhaps only for some Pythons and systems, and its hashes: nothing else, and above all no URL.
ENTRY = re.compile(r"[\w.-]+==[\w.]+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")


def entries(part: str) -> list[Requirement]:
    """The packages of this part of the lock; each with its hashes, and nothing between them."""
    text = (ROOT / "requirements" / f"{part}.txt").read_text("utf-8")
    text = re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE)
    assert ENTRY.sub("", text).strip() == ""
    return [Requirement(found[0].partition(" \\\n")[0]) for found in ENTRY.finditer(text)]


def locked(part: str) -> dict[str, Version]:
    """The version of each package for this Python."""
    wanted = [entry for entry in entries(part) if entry.marker is None or entry.marker.evaluate()]
    return {canonicalize_name(entry.name): Version(str(entry.specifier)[2:]) for entry in wanted}


def needed(asked: list[Requirement]) -> Iterator[Requirement]:
    """These packages and all their dependencies, as they are installed here."""
    seen, left = set[str](), list(asked)
    while left:
        one = left.pop()
        yield one
        for extra in one.extras | {""}:
            if (name := f"{one.name}[{extra}]") not in seen:
                seen.add(name)
                of_it = map(Requirement, metadata.requires(one.name) or ())
                left += [each for each in of_it if not each.marker or each.marker.evaluate({"extra": extra})]


@pytest.mark.parametrize("part", LOCKS)
def test_the_lock_has_a_version_with_hashes_that_pyproject_allows(part: str) -> None:
    versions = locked(part)
    for asked in LOCKS[part]:
        name = canonicalize_name(asked.name)
        assert name in versions, f"{asked} is not in requirements/{part}.txt: run `make lock`"
        assert versions[name] in asked.specifier, f"{asked}, locked {versions[name]}: run `make lock`"


@pytest.mark.parametrize("part", ["run", "test"])
def test_nothing_that_a_locked_package_needs_is_missing(part: str) -> None:
    versions = locked(part)
    for wanted in needed(LOCKS[part]):
        name = canonicalize_name(wanted.name)
        assert name in versions, wanted
        assert versions[name] in wanted.specifier, wanted


def test_parts_of_the_lock_have_one_version_of_each_package() -> None:
    everywhere = locked("test")
    for part in LOCKS:
        shared = {name: version for name, version in locked(part).items() if name in everywhere}
        assert shared == {name: everywhere[name] for name in shared}, part


def test_the_tests_run_with_what_is_locked() -> None:
    for name, version in locked("test").items():
        assert Version(metadata.version(name)) == version, f"{name}: run `make unit`, which installs it"


def test_no_locked_release_was_yanked_when_it_was_installed() -> None:
    for report in Path(sys.prefix).glob("*.json"):  # written by `make`; packages from before are not in it
        installed = json.loads(report.read_text("utf-8")).get("install", [])
        yanked = [each["metadata"]["name"] for each in installed if each.get("is_yanked")]
        assert not yanked, f"{yanked} were withdrawn by those who published them: run `make lock`"


def test_each_dependency_has_an_upper_bound_and_a_reason() -> None:
    reasons = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Dependencies")[2]
    for asked in [*ASKED, *BUILD, *AUDIT, *(each for extra in EXTRAS.values() for each in extra)]:
        assert any(part.operator == "<" for part in asked.specifier), f"{asked} has no upper bound"
    for asked in ASKED:
        assert re.search(rf"^\| {asked.name} ", reasons, re.MULTILINE), f"{asked.name} has no reason"
