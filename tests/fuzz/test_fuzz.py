"""Parsers of foreign text keep their promises for coverage-guided inputs: a minute in CI."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fuzz.__main__ import TARGETS
from tests.sampling import seed, times

SECONDS = 12
"""Seconds of each target in CI; `make fuzz` takes hours."""


def fuzz(
    target: str, findings: Path, seconds: int, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one target to its end."""
    return subprocess.run(
        [
            # libFuzzer compares the peak of memory with its limit. Linux passes that of pytest, which may be
            # higher, to the programs that pytest executes; a shell in between starts with a low peak.
            *("/bin/sh", "-c", '"$@"; exit $?', "fuzz"),
            *(sys.executable, "-m", "tests.fuzz", target, "--findings", str(findings)),
            *("--seconds", str(seconds), "--seed", str(seed() % 2**31)),
        ],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


@pytest.mark.campaign
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_hangs_a_target_fills_memory_or_gets_an_unclear_error(target: str, tmp_path: Path) -> None:
    ended = fuzz(target, tmp_path, times(SECONDS, 600))
    assert ended.returncode == 0, ended.stdout[-6_000:]
    assert "DONE" in ended.stdout, ended.stdout[-6_000:]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("defect", "words"), [("error", "planted"), ("hang", "timeout"), ("memory", "out-of-memory")]
)
def test_a_planted_defect_is_found(defect: str, words: str, tmp_path: Path) -> None:
    ended = fuzz("planted", tmp_path, 60, {"PLANTED_DEFECT": defect})
    assert ended.returncode != 0, ended.stdout[-6_000:]
    assert words in ended.stdout, ended.stdout[-6_000:]
    (finding,) = tmp_path.iterdir()
    assert finding.read_bytes().startswith(b"bug")
