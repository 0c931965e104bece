"""`orchestrator sql preview`, with its own Spark."""

import contextlib
from pathlib import Path

import psutil
import pytest

from tests.acceptance.support import (
    SPARK_TIMEOUT_S,
    Running,
    Shell,
    assert_no_traceback,
    assert_nothing_is_left,
)
from tests.jobs_support import marked_processes
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SCRIPT = """\
CREATE TABLE orders USING csv OPTIONS (path '${file}');
CREATE VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
CREATE VIEW endless AS SELECT count(*) AS n FROM range(0, 1000000000000000);
"""
ORDERS = "customer,amount\nann,1\nbob,\n"


def test_rows_are_shown_and_nothing_is_left(shell: Shell, process_mark: str) -> None:
    shell.write("s.sql", SCRIPT)
    shell.write("orders.csv", ORDERS)
    shown = shell.type_anew("sql", "preview", "s.sql", "orders", "--set", "file=orders.csv")
    assert_nothing_is_left(process_mark)
    assert shown.code == 0, shown.stderr
    assert [line.split() for line in shown.stdout.splitlines()[2:]] == [["ann", "1"], ["bob", "NULL"]]
    assert (
        shown.stderr
        == "starting Spark on this machine ...\n2 rows of orders (customer STRING, amount STRING)\n"
    )
    assert sorted(path.name for path in shell.directory.iterdir()) == ["orders.csv", "s.sql"]
    document = shell.type_anew(
        "sql", "preview", "s.sql", "totals", "-n", "1", "-o", "json", "--set", "file=orders.csv"
    )
    assert document.json()["columns"] == [
        {"name": "customer", "type": "string"},
        {"name": "total", "type": "double"},
    ]
    assert document.json()["has_more"]


def test_a_secret_of_a_variable_is_in_no_message(shell: Shell) -> None:
    shell.write("s.sql", "CREATE VIEW v AS SELECT nope('${password}') AS x;")
    refused = shell.type_anew("sql", "preview", "s.sql", "v", "--set", "password=hunter22secret")
    assert refused.code == 2
    assert "s.sql:1:25: " in refused.stderr
    assert "hunter22secret" not in refused.stdout + refused.stderr


def test_a_wrong_name_file_or_script_is_an_error_with_its_place(shell: Shell, process_mark: str) -> None:
    shell.write("s.sql", SCRIPT)
    wrong_name = shell.type("sql", "preview", "s.sql", "order", "--set", "file=orders.csv")
    assert (wrong_name.code, wrong_name.stderr) == (
        2,
        "error: s.sql: the script declares no table or view 'order'; did you mean 'orders'?\n",
    )
    shell.write("p.sql", "CREATE TABLE p USING print; INSERT INTO p SELECT 1")
    written = shell.type("sql", "preview", "p.sql", "p")
    assert (written.code, written.stderr) == (
        2,
        "error: p.sql:1: table 'p' has no rows to show: connector 'print' can only be written\n",
    )
    missing = shell.type_anew("sql", "preview", "s.sql", "totals", "--set", "file=nowhere.csv")
    assert_nothing_is_left(process_mark)
    assert missing.code == 2
    assert missing.stderr.startswith("starting Spark on this machine ...\nerror: s.sql:1:1: table 'orders': ")
    assert "nowhere.csv" in missing.stderr
    assert_no_traceback(missing.stderr)


def start_endless(shell: Shell, mark: str) -> Running:
    """A preview that computes for ever; its temporary files are in the folder `tmp`."""
    shell.write("s.sql", SCRIPT)
    folder = shell.directory / "tmp"
    folder.mkdir()
    command = shell.start("sql", "preview", "s.sql", "endless", "--set", "file=x", TMPDIR=str(folder))
    wait_until(
        lambda: any(is_computing(each) for each in marked_processes(mark)), SPARK_TIMEOUT_S, "it computes"
    )
    return command


def is_computing(process: psutil.Process) -> bool:
    """Whether a process is a JVM with a task thread."""
    with contextlib.suppress(psutil.Error, OSError):
        names = [Path(f"/proc/{process.pid}/task/{thread.id}/comm") for thread in process.threads()]
        return any(name.read_text().startswith("Executor task") for name in names)
    return False


@pytest.mark.parametrize(("is_terminated", "code"), [(False, 130), (True, 143)])
def test_an_interrupt_ends_spark_too(shell: Shell, process_mark: str, is_terminated: bool, code: int) -> None:
    command = start_endless(shell, process_mark)
    if is_terminated:
        command.terminate()
    else:
        command.press_ctrl_c()
    assert command.wait(20).code == code, command.stderr
    assert_nothing_is_left(process_mark)
    assert_no_traceback(command.stderr)
    assert not list((shell.directory / "tmp").iterdir())


def test_spark_ends_with_a_command_that_is_killed(shell: Shell, process_mark: str) -> None:
    command = start_endless(shell, process_mark)
    command.kill()
    assert_nothing_is_left(process_mark)
