"""Another user of this host against the commands that start a ZooKeeper, and against directories."""

import os
from pathlib import Path

import pytest

from orchestrator.compose import build_client, open_session
from orchestrator.config.settings import Settings
from queues import running_server
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import (
    SPARK_TIMEOUT_S,
    Shell,
    assert_nothing_is_left,
    has_started,
    program_that_waits,
)
from tests.another_user import STRANGER, as_another_user
from tests.jobs_support import python_job
from tests.waiting import wait_until


@pytest.fixture
def quick_shell(shell: Shell) -> Shell:
    """A shell with its own server, and stand-ins as drivers."""
    shell.use_stand_ins()
    return shell


def enqueued_by_another_user(shell: Shell, program: str) -> object:
    """Submit as another user who knows the port and has the library; returns the id or the error."""
    server = running_server(shell.state_dir / "zookeeper")
    assert server is not None
    settings = Settings(zookeeper_hosts=server.address)
    definition = python_job(program, name="theirs")

    def submit() -> str:
        with open_session(settings, settings.zookeeper_hosts) as session:
            return build_client(session, settings).submit(definition).id

    return as_another_user(submit)


@pytest.mark.parametrize("command", ["up", "run"])
def test_another_user_can_enqueue_no_job_and_read_none(
    quick_shell: Shell, process_mark: str, tmp_path: Path, command: str
) -> None:
    started, go_on, theirs = tmp_path / "started", tmp_path / "go on", tmp_path / "theirs"
    job = quick_shell.python_job("ours", program_that_waits(started, go_on))
    if command == "up":
        first = quick_shell.start("up")
        first.wait_for_words("Ctrl-C ends them")
        assert quick_shell.type("job", "submit", str(job), "--id", "ours").code == 0
    else:
        first = quick_shell.start("run", str(job), "--id", "ours")
    wait_until(lambda: has_started(started), SPARK_TIMEOUT_S, "our job runs")
    answer = enqueued_by_another_user(quick_shell, f"open({str(theirs)!r}, 'w').write('as our user')")
    assert answer == "AccessDenied"
    assert [job["id"] for job in quick_shell.jobs()] == ["ours"]
    go_on.touch()
    if command == "up":
        assert quick_shell.type("job", "wait", "ours", timeout=SPARK_TIMEOUT_S).code == 0
        first.press_ctrl_c()
        assert first.wait(60).code == 130
    else:
        assert first.wait(SPARK_TIMEOUT_S).code == 0
    assert not theirs.exists()
    assert_nothing_is_left(process_mark)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("owner", [0, STRANGER])
def test_a_state_directory_that_others_can_write_is_refused_and_nothing_in_it_is_run(
    quick_shell: Shell, tmp_path: Path, owner: int
) -> None:
    planted, ran = quick_shell.state_dir / "spark-conf" / "spark-env.sh", tmp_path / "ran"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"touch {ran}\n")
    for path in (planted, planted.parent, quick_shell.state_dir):
        os.chown(path, owner, owner)
        path.chmod(0o777)
    quick_shell.write("well.py", "print('well')\n")
    for command in (["run", "well.py"], ["up"], ["zookeeper"], ["job", "list"], ["logs", "tail"]):
        ended = quick_shell.type(*command)
        assert_error(ended, 2, str(quick_shell.state_dir), "is not used")
    assert not ran.exists()
    os.chown(quick_shell.state_dir, 0, 0)
    quick_shell.state_dir.chmod(0o700)  # without a check of its content
    assert_error(quick_shell.type("run", "well.py"), 2, str(planted.parent), "is not used")
    assert not ran.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_among_those_that_spark_runs_is_refused(
    quick_shell: Shell, tmp_path: Path
) -> None:
    planted, ran = quick_shell.state_dir / "spark-conf" / "spark-env.sh", tmp_path / "ran"
    planted.parent.mkdir(parents=True)
    for path in (planted.parent, quick_shell.state_dir):
        path.chmod(0o700)
    planted.write_text(f"touch {ran}\n")
    os.chown(planted, STRANGER, STRANGER)
    quick_shell.write("well.py", "print('well')\n")
    assert_error(
        quick_shell.type("run", "well.py"), 2, f"{planted} is not used: another user may have written it"
    )
    assert not ran.exists()


def test_a_server_in_the_foreground_prints_how_others_log_in(quick_shell: Shell) -> None:
    server = quick_shell.start("zookeeper")
    server.wait_for_words("addauth digest orchestrator:")
    lines = [line.strip() for line in server.stderr.splitlines() if "export" in line]
    environment = dict(part.split("=", 1) for line in lines for part in line.removeprefix("export ").split())
    password = Path(environment["ORCHESTRATOR_ZOOKEEPER_LOGIN__PASSWORD_FILE"])
    assert password.read_text("ascii").strip() not in server.stderr
    known = quick_shell.environment
    quick_shell.environment = (
        known | environment | {"ORCHESTRATOR_STATE_DIR": f"{quick_shell.directory}/other"}
    )
    assert quick_shell.type("zkcli", "ls", "/").stdout == "[zookeeper]\n"
    for name in environment.keys() - {"ZOOKEEPER_HOSTS"}:
        del quick_shell.environment[name]
    assert quick_shell.type("zkcli", "ls", "/").stderr == "Insufficient permission : /\n"
    server.terminate()
    assert server.wait().code == 0
