"""`orchestrator job submit --dry-run`: the checks of a submission without one."""

import json
from collections.abc import Iterator

import pytest

from queues import Session, SessionSettings
from tests.acceptance.support import Shell, assert_no_traceback, assert_nothing_is_left

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SCRIPT = """\
CREATE TABLE src (id INT, name STRING) USING csv OPTIONS (path 'in.csv');
CREATE TABLE out (id INT) USING csv OPTIONS (path 'out');
INSERT OVERWRITE out SELECT {column} FROM src;
"""


def nodes(session: Session, path: str) -> Iterator[str]:
    """All nodes below a path, with their versions."""
    found = session.get(path)
    yield f"{path} {found and found[1].version}"
    for name in sorted(session.children(path) or ()):
        yield from nodes(session, f"{path}/{name}")


@pytest.fixture
def session(zookeeper_hosts: str) -> Iterator[Session]:
    with Session(SessionSettings(hosts=zookeeper_hosts)) as opened:
        yield opened


def test_everything_is_checked_and_nothing_is_enqueued(
    shared_shell: Shell, session: Session, zookeeper_root: str, process_mark: str
) -> None:
    shared_shell.write("s.sql", SCRIPT.format(column="name"))
    before = list(nodes(session, zookeeper_root))
    done = shared_shell.type_anew("job", "submit", "s.sql", "--id", "j-1", "--dry-run")
    assert_nothing_is_left(process_mark)
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "would submit job s with id j-1 in pool default"
    assert f"  writes:    out (csv) in {shared_shell.directory}/out" in done.stdout
    assert "  start:     no worker is connected; " in done.stdout
    assert "s.sql:3:29: warning: table 'out': column 'name' into 'id', STRING as INT: " in done.stderr
    assert done.stderr.endswith("nothing was enqueued\n")
    assert list(nodes(session, zookeeper_root)) == before
    assert shared_shell.jobs() == []


def test_a_secret_of_a_variable_is_not_shown(shared_shell: Shell) -> None:
    shared_shell.write("s.sql", "SELECT '${password}'")
    for more in ((), ("-o", "json")):
        done = shared_shell.type(
            *("job", "submit", "s.sql", "--dry-run", "--no-spark", "--set", "password=hunter22secret"), *more
        )
        assert done.code == 0, done.stderr
        assert "variables.password" in done.stdout + done.stderr
        assert "hunter22secret" not in done.stdout + done.stderr


def test_without_spark_it_is_quick_and_says_what_it_left_out(shared_shell: Shell) -> None:
    shared_shell.write("in.csv", "id,name\n")
    shared_shell.write("s.sql", SCRIPT.format(column="no_function(id)"))
    done = shared_shell.type("job", "submit", "s.sql", "--dry-run", "--no-spark")
    assert done.code == 0
    assert done.stderr.splitlines() == [
        "checked: definition, program, policy, cluster; not checked: Spark's analysis (--no-spark)",
        "nothing was enqueued",
    ]
    document = shared_shell.type("job", "submit", "s.sql", "--dry-run", "--no-spark", "-o", "json").json()
    assert document["would"] == "submit"
    assert document["checked"] == ["definition", "program", "policy", "cluster"]


def test_errors_that_spark_finds_exit_as_a_refused_script(shared_shell: Shell, process_mark: str) -> None:
    shared_shell.write("s.sql", SCRIPT.format(column="no_function(id)"))
    done = shared_shell.type_anew("job", "submit", "s.sql", "--dry-run", "-o", "json")
    assert_nothing_is_left(process_mark)
    assert (done.code, done.stdout) == (2, "")
    assert "s.sql:3:29: " in done.stderr
    assert_no_traceback(done.stderr)


def test_columns_that_do_not_exist_are_refused_without_spark_too(shared_shell: Shell) -> None:
    shared_shell.write("s.sql", SCRIPT.format(column="nope, naem"))
    for more in (("--no-spark",), ()):
        done = shared_shell.type("job", "submit", "s.sql", "--dry-run", "-o", "json", *more)
        assert (done.code, done.stdout) == (2, "")
        assert "s.sql:3:29: unknown column 'nope'" in done.stderr
        assert "s.sql:3:35: unknown column 'naem'; did you mean 'name'?" in done.stderr


def test_run_refuses_columns_that_do_not_exist_before_spark_starts(shared_shell: Shell) -> None:
    shared_shell.write("s.sql", SCRIPT.format(column="nope, naem"))
    done = shared_shell.type_anew("run", "s.sql", "-o", "json")
    assert (done.code, done.stdout) == (2, "")
    assert "s.sql:3:29: unknown column 'nope'" in done.stderr
    assert "s.sql:3:35: unknown column 'naem'; did you mean 'name'?" in done.stderr
    assert "job s-" not in done.stderr, "nothing was enqueued"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("bad.sql",), 2),
        (("missing.sql",), 2),
        (("s.sql", "--id", "a/b"), 2),
        (("s.sql", "--delay", "soon"), 2),
        (("s.sql", "--id", "taken"), 5),
        (("s.sql", "--pool", "full"), 5),
        (("s.yaml", "--id", "x"), 2),
    ],
)
def test_what_a_submission_would_refuse_is_refused_alike(
    arguments: tuple[str, ...], code: int, shared_shell: Shell
) -> None:
    shared_shell.write("in.csv", "id,name\n")
    shared_shell.write("bad.sql", "SELEC 1")
    shared_shell.write("s.sql", SCRIPT.format(column="id"))
    shared_shell.write("s.yaml", "{name: s, script: s.sql, schedule: {every: 10m}}")
    assert shared_shell.type("job", "submit", "s.sql", "--id", "taken", "--pool", "full").code == 0
    assert shared_shell.type("config", "set", "pool.full.bound", "1").code == 0
    dry = shared_shell.type("job", "submit", *arguments, "--dry-run", "--no-spark")
    real = shared_shell.type("job", "submit", *arguments)
    assert (dry.code, real.code) == (code, code)
    assert dry.stderr == real.stderr
    assert len(shared_shell.jobs()) == 1


def test_the_policy_of_the_operator_applies(shared_shell: Shell) -> None:
    shared_shell.write("in.csv", "id,name\n")
    shared_shell.write("s.sql", SCRIPT.format(column="id"))
    config = shared_shell.write("config.toml", '[policy."*"]\nconnectors = ["parquet"]\n')
    shared_shell.environment["ORCHESTRATOR_CONFIG"] = str(config)
    dry = shared_shell.type("job", "submit", "s.sql", "--dry-run", "--no-spark")
    real = shared_shell.type("job", "submit", "s.sql")
    assert (dry.code, dry.stderr) == (real.code, real.stderr)
    assert "the connector 'csv'" in dry.stderr


def test_without_a_cluster_it_fails_as_a_submission(shell: Shell) -> None:
    shell.write("s.sql", SCRIPT.format(column="id"))
    dry = shell.type("job", "submit", "s.sql", "--dry-run", "--no-spark")
    real = shell.type("job", "submit", "s.sql")
    assert (dry.code, dry.stderr) == (real.code, real.stderr)
    assert dry.code == 3


def test_a_schedule_is_checked_with_a_fire_time_and_not_registered(
    shared_shell: Shell, process_mark: str
) -> None:
    shared_shell.write("s.sql", SCRIPT.format(column="length('${fire_time}')"))
    shared_shell.write("s.yaml", "{name: s, script: s.sql, schedule: {cron: '0 6 * * *'}}")
    done = shared_shell.type_anew("job", "submit", "s.yaml", "--dry-run")
    assert_nothing_is_left(process_mark)
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "would register schedule s of 0 6 * * * in pool default"
    assert json.loads(shared_shell.type("schedule", "list", "-o", "json").stdout) == []


def test_a_program_needs_no_spark(shared_shell: Shell) -> None:
    shared_shell.write("p.py", "print(1)\n")
    done = shared_shell.type("job", "submit", "p.py", "--dry-run")
    assert done.code == 0, done.stderr
    assert "would submit job p in pool default" in done.stdout
    shared_shell.write("p.py", "print(\n")
    assert shared_shell.type("job", "submit", "p.py", "--dry-run").code == 2
    assert shared_shell.type("job", "submit", "p.py", "--no-spark").code == 2
