"""`orchestrator doctor` on hosts that are really unfit: each check is made to fail, and says what to do.

Namespaces make the faults, as root: a full disk, no loopback, no /proc, a name without an address.
"""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support import COMMAND, COMMAND_TIMEOUT_S, Shell

UNSHARE = str(shutil.which("unshare"))
Findings = Mapping[str, Mapping[str, Any]]


def examined(shell: Shell, *wrapper: str, **environment: str) -> tuple[int, Findings]:
    """The exit code of the doctor, and its findings by kind."""
    done = subprocess.run(
        [*wrapper, *COMMAND, "doctor", "-o", "json"],
        cwd=shell.directory,
        env=shell.environment | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    rows = json.loads(done.stdout)
    assert "Traceback" not in done.stderr
    return done.returncode, {row["kind"]: row for row in rows}


def with_mounts(script: str) -> Sequence[str]:
    return (UNSHARE, "--mount", "sh", "-c", f'{script} && exec "$@"', "sh")


def test_a_fit_host_has_notes_alone_and_nothing_is_changed(shell: Shell) -> None:
    code, found = examined(shell)
    assert code == 0, found
    assert set(found) == {"this-host"}
    assert not shell.state_dir.exists()
    page = shell.type("doctor")
    assert "Java " in page.stdout
    assert "can listen on 127.0.0.1, on ports that are free such as " in page.stdout
    assert page.stderr.splitlines()[-1] == "no problems"


def java_of(version: str) -> Callable[[Path], dict[str, str]]:
    def make(folder: Path) -> dict[str, str]:
        program = folder / "old" / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", "utf-8")
        program.chmod(0o755)
        return {"JAVA_HOME": str(folder / "old")}

    return make


def open_directory(folder: Path) -> dict[str, str]:
    (folder / "state").mkdir()
    (folder / "state").chmod(0o777)
    return {}


def settings_file(folder: Path, text: str) -> dict[str, str]:
    (folder / "settings.toml").write_text(text, "utf-8")
    return {"ORCHESTRATOR_CONFIG": str(folder / "settings.toml")}


def readable_secret(folder: Path) -> dict[str, str]:
    (folder / "key").write_text("secret", "utf-8")
    (folder / "key").chmod(0o644)
    return {
        "ORCHESTRATOR_ARCHIVE__URL": "https://search:9200",
        "ORCHESTRATOR_ARCHIVE__KEY_FILE": str(folder / "key"),
    }


FAULTS: dict[str, tuple[str, Callable[[Path], dict[str, str]]]] = {
    "java-missing": ("install a JDK", lambda folder: {"JAVA_HOME": str(folder / "none")}),
    "java-missing (old)": ("version 11 was found", java_of("11.0.2")),
    "spark-missing": ("SPARK_HOME", lambda folder: {"SPARK_HOME": str(folder)}),
    "spark-missing (pool)": ("spark_home", lambda f: settings_file(f, 'spark.a.spark_home = "/none"')),
    "little-memory": ("slots", lambda _: {"ORCHESTRATOR_SLOTS": "20000"}),
    "little-memory (driver)": (
        "a driver needs",
        lambda folder: settings_file(folder, 'spark."*".driver.memory = "9000g"'),
    ),
    "unsafe-directory": ("chmod 700", open_directory),
    "unwritable-directory": ("state_dir", lambda _: {"ORCHESTRATOR_STATE_DIR": "/proc/self/state"}),
    "readable-secret": ("chmod go=", readable_secret),
    "zookeeper-unreachable": (
        "check",
        lambda _: {"ZOOKEEPER_HOSTS": "127.0.0.1:1", "ORCHESTRATOR_CONNECT_TIMEOUT": "1s"},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_settings_or_of_a_directory(fault: str, shell: Shell) -> None:
    words, make = FAULTS[fault]
    code, found = examined(shell, **make(shell.directory))
    finding = found[fault.partition(" ")[0]]
    assert code == 1
    assert words in f"{finding['what']} {finding['remedy']}"
    assert finding["remedy"]


WRAPPED = {
    "few-open-files": ("prlimit", "--nofile=256"),
    "little-disk": with_mounts('mkdir state && mount -t tmpfs -o size=1m none "$PWD/state"'),
    "noexec-tmp": with_mounts('mkdir t && mount -t tmpfs -o noexec none "$PWD/t" && export TMPDIR="$PWD/t"'),
    "no-proc": with_mounts("umount -l /proc"),
    "no-loopback": (UNSHARE, "--net"),
    "unresolved-host": (UNSHARE, "--uts", "sh", "-c", 'hostname no-such-host.invalid && exec "$@"', "sh"),
}


@pytest.mark.parametrize("fault", WRAPPED)
def test_a_fault_of_the_system(fault: str, shell: Shell) -> None:
    code, found = examined(shell, *WRAPPED[fault])
    assert code == 1
    assert found[fault]["remedy"]


def test_no_directory_for_temporary_files(shell: Shell) -> None:
    read_only = " && ".join(
        f"mount -o bind {each} {each} && mount -o remount,ro,bind {each} {each}"
        for each in ("/tmp", "/var/tmp")
    )
    script = f'mkdir state && state="$PWD/state" && {read_only} && mount -t tmpfs none "$state" && cd /proc'
    code, found = examined(shell, *with_mounts(script))
    assert code == 1
    assert "no temporary file can be written" in found["unwritable-directory"]["what"]


def test_a_port_of_metrics_that_is_taken(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = str(taken.getsockname()[1])
        code, found = examined(shell, ORCHESTRATOR_METRICS__ADDRESS=address)
    assert (code, found["port-taken"]["path"]) == (1, "metrics.address")
    code, found = examined(shell, ORCHESTRATOR_METRICS__ADDRESS=address)
    assert (code, "port-taken" in found) == (0, False)


def test_a_host_without_time_zones(shell: Shell) -> None:
    hidden = shell.directory / "tzdata"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ImportError\n", "utf-8")
    path = os.pathsep.join([str(shell.directory), os.environ.get("PYTHONPATH", "")])
    code, found = examined(shell, PYTHONTZPATH="", PYTHONPATH=path)
    assert (code, found["no-time-zones"]["severity"]) == (1, "warning")


def test_a_clock_that_is_wrong_is_compared_with_that_of_zookeeper(shared_shell: Shell) -> None:
    examined(shared_shell)
    shared_shell.type("zkcli", "create", shared_shell.environment["ORCHESTRATOR_ROOT"])
    code, found = examined(shared_shell)
    assert (code, "clock-skew" in found) == (0, False)
    ahead = (
        "import sys, time; real = time.time; time.time = lambda: real() + 60; "
        "from orchestrator.cli.app import run_app; sys.exit(run_app(['doctor', '-o', 'json']))"
    )
    done = subprocess.run(
        [COMMAND[0], "-c", ahead],
        cwd=shared_shell.directory,
        env=shared_shell.environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    rows = {row["kind"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 1
    assert "60.0 s ahead of" in rows["clock-skew"]["what"]
