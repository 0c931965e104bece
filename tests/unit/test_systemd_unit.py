"""The units of a worker and of a ZooKeeper server: systemd accepts them and rates their exposure as low."""

import inspect
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.cli.exits import Exit
from orchestrator.cli.serve import zookeeper
from tests.servers.zookeeper import unavailable

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT, ZOOKEEPER = "orchestrator-worker.service", "orchestrator-zookeeper.service"
# Exposure in tenths, of 100: Java, Spark and drivers that outlive their worker need it. The old unit had 92.
MOST, MOST_FOR_ROOT, MOST_FOR_ZOOKEEPER = 25, 40, 20


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit of workers, as `copied`; the test writes the drop-in."""
    return copied(UNIT, tmp_path)


def copied(name: str, tmp_path: Path) -> Path:
    """A unit with a program that exists."""
    if shutil.which("systemd-analyze") is None:
        unavailable("no systemd-analyze")
    text = (DEPLOY / name).read_text("utf-8")
    program = "/opt/spark-job-orchestrator/venv/bin/orchestrator"
    assert program in text
    made = tmp_path / name
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
    check(unit, most)


def test_the_unit_of_a_server_is_understood_and_exposes_little(tmp_path: Path) -> None:
    check(copied(ZOOKEEPER, tmp_path), MOST_FOR_ZOOKEEPER)


def check(unit: Path, most: int) -> None:
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


@pytest.mark.parametrize("name", [UNIT, ZOOKEEPER])
def test_temporary_files_can_be_written(name: str) -> None:
    lines = set((DEPLOY / name).read_text("utf-8").splitlines())
    assert "ProtectSystem=strict" in lines, "which mounts /tmp read-only, too"
    assert lines & {"PrivateTmp=yes", "ReadWritePaths=/tmp"}


@pytest.mark.parametrize("name", [UNIT, ZOOKEEPER])
def test_a_wrong_option_is_not_tried_again_and_again(name: str) -> None:
    lines = (DEPLOY / name).read_text("utf-8").splitlines()
    assert {"Restart=always", f"RestartPreventExitStatus={int(Exit.USAGE)}"} <= set(lines)


def test_the_command_of_a_server_has_the_options_of_the_program() -> None:
    text = (DEPLOY / ZOOKEEPER).read_text("utf-8")
    command = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    used = {word for word in command.split() if word.startswith("--")}
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(zookeeper).parameters}
    assert used == {"--ensemble", "--certificate", "--password-file"} <= known


def test_drivers_survive_the_end_of_the_worker_and_an_end_of_memory() -> None:
    lines = (DEPLOY / UNIT).read_text("utf-8").splitlines()
    assert {"KillMode=process", "OOMPolicy=continue"} <= set(lines)
    assert not [line for line in lines if line.startswith("PrivateTmp=")]
