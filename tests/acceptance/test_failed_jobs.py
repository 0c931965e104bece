"""Jobs that cannot succeed: the reason is on stderr, in `job show`, and in the record as zkCli prints it."""

import json
from typing import Any

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Ended, Shell, assert_no_traceback, assert_nothing_is_left

pytestmark = pytest.mark.timeout(300)

PETS = "CREATE TABLE pets (name STRING, legs INT) WITH ('connector' = 'inline', 'rows' = '[[\"cat\", 4]]');\n"
WALKERS = "CREATE TABLE walkers USING json OPTIONS (path '{}');\n"


def assert_job_failed(
    shell: Shell, ended: Ended, job_id: str, mark: str, *words: str, has_traceback: bool = False
) -> dict[str, Any]:
    """The command ended with 1, and all three outputs have the reason; returns the job.

    `has_traceback`: with one of the user's program, and of nothing else.
    """
    assert ended.code == 1, ended
    assert ended.stdout == ""
    if has_traceback:
        assert f'Traceback (most recent call last):\n  File "{shell.directory}/' in ended.stderr
        assert "spark_runner" not in ended.stderr
    else:
        assert_no_traceback(ended.stderr)
    assert_nothing_is_left(mark)
    job = shell.job(job_id)
    assert (job["status"], job["queue"]) == ("ERROR_FAIL", "finish")
    zkcli = shell.type("zkcli", "get", job["record_path"])
    assert zkcli.code == 0, zkcli
    outputs = {
        "stderr": ended.stderr,
        "job show": shell.type("job", "show", job_id).stdout,
        "job show -o json": job["error"]["message"],
        "zkcli": zkcli.stdout,
    }
    for source, text in outputs.items():
        for word in words:
            # zkCli prints the bytes of the record, with quotes and line ends escaped as in JSON.
            written = json.dumps(word, ensure_ascii=False)[1:-1] if source == "zkcli" else word
            assert written in text, (source, text)
    assert "ERROR_FAIL" in zkcli.stdout
    assert shell.queues() == {**dict.fromkeys(shell.queues(), 0), "finish": 1}
    return job


@pytest.mark.spark
def test_a_column_that_only_spark_misses(shared_shell: Shell, process_mark: str) -> None:
    # `run` itself finds what it knows of columns; only Spark knows those of a LATERAL VIEW.
    source = "pets LATERAL VIEW explode(array(1)) AS one"
    insert = f"INSERT INTO walkers\nSELECT name,\n       lecks\nFROM {source};\n"
    shared_shell.write("pets.sql", PETS + WALKERS.format("out") + insert)
    ended = shared_shell.type("run", "pets.sql", "--id", "failed")
    job = assert_job_failed(
        shared_shell,
        ended,
        "failed",
        process_mark,
        "pets.sql:5:8: ",
        "`lecks` cannot be resolved",
        "`legs`",  # Spark's own suggestion
        "5 |        lecks",
    )
    assert job["error"]["error_class"] == "definition"
    assert not (shared_shell.directory / "out").exists()


def test_a_python_program_whose_neighbour_has_a_syntax_error(
    stand_in_shell: Shell, process_mark: str
) -> None:
    # A syntax error of the program itself is refused earlier; the neighbour is read at run time.
    stand_in_shell.write("broken.py", "print('a')\nif True print('b')\n")
    stand_in_shell.write("job.py", "import broken\n")
    ended = stand_in_shell.type("run", "job.py", "--id", "failed")
    words = ("broken.py:2: SyntaxError: invalid syntax", "if True print('b')")
    assert_job_failed(stand_in_shell, ended, "failed", process_mark, *words, has_traceback=True)


@pytest.mark.spark
def test_spark_that_cannot_start(shared_shell: Shell, process_mark: str) -> None:
    shared_shell.write("well.py", "print('well')\n")
    # Spark refuses less than about 450 MB; only the output of its driver has this reason.
    definition = {
        "name": "small",
        "python": "well.py",
        "spark": {"driver": {"memory": "64m"}},
        "retry": {"attempts": 1},
    }
    shared_shell.write("small.json", json.dumps(definition))
    ended = shared_shell.type("run", "small.json", "--id", "failed")
    assert_job_failed(shared_shell, ended, "failed", process_mark, "memory")


def test_a_finished_job_cannot_be_killed(shell: Shell, process_mark: str) -> None:
    shell.use_stand_ins()
    shell.write("well.py", "print('well')\n")
    up = shell.start("up")
    up.wait_for_words("Ctrl-C ends them")
    done = shell.type("job", "submit", "well.py", "--id", "done", "--wait")
    assert (done.code, done.stdout) == (0, "done\n"), done
    assert_error(shell.type("job", "kill", "done"), 5, "job 'done' has already ended as SUCCESS")
    assert shell.job("done")["status"] == "SUCCESS"
    assert_error(shell.type("run", "well.py", "--id", "done"), 5, "id 'done' is taken")
    up.press_ctrl_c()
    assert up.wait(60).code == 130
    assert_nothing_is_left(process_mark)
