"""The unit of a worker: systemd accepts it and rates its exposure as low."""

import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = "orchestrator-worker.service"
# Exposure in tenths, of 100: Java, Spark and drivers that outlive their worker need it. The old unit had 92.
MOST, MOST_FOR_ROOT = 25, 40


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that exists; the test writes the drop-in."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    text = (DEPLOY / UNIT).read_text("utf-8")
    program = "/opt/spark-job-orchestrator/venv/bin/orchestrator"
    assert program in text
    made = tmp_path / UNIT
    made.write_text(text.replace(program, "/bin/true"), "utf-8")
    return made


def exposure(unit: Path, threshold: int) -> subprocess.CompletedProcess[str]:
    options = ["--offline=true", f"--threshold={threshold}", "--no-pager"]
    return run("security", *options, str(unit))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(("is_root", "most"), [(False, MOST), (True, MOST_FOR_ROOT)])
def test_the_unit_is_understood_and_exposes_little(unit: Path, is_root: bool, most: int) -> None:
    if is_root:
        shutil.copytree(DEPLOY / f"{UNIT}.d", unit.with_name(f"{UNIT}.d"))
    verified = run("verify", str(unit))
    assert (verified.returncode, verified.stderr) == (0, "")
    found = exposure(unit, most)
    if "unrecognized option" in found.stderr:
        pytest.skip("this systemd-analyze looks at units of the running system alone")
    assert found.returncode == 0, found.stdout[-500:]


def test_a_unit_without_its_protections_is_found_out(unit: Path) -> None:
    protections = ("Protect", "Private", "Restrict", "SystemCall", "NoNew", "Capability")
    lines = unit.read_text("utf-8").splitlines(keepends=True)
    unit.write_text("".join(line for line in lines if not line.startswith(protections)), "utf-8")
    assert exposure(unit, MOST).returncode != 0


def test_drivers_survive_the_end_of_the_worker_and_an_end_of_memory() -> None:
    lines = (DEPLOY / UNIT).read_text("utf-8").splitlines()
    assert {"KillMode=process", "OOMPolicy=continue"} <= set(lines)
    assert not [line for line in lines if line.startswith("PrivateTmp=")]
