"""`orchestrator logs` on the command line, without Elasticsearch and with a real one."""

import json

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND_TIMEOUT_S, Shell
from tests.waiting import wait_until

SEARCHABLE_S = 30


@pytest.fixture
def shell_with_logs(shared_shell: Shell, log_alias: str) -> Shell:
    """A shell with its own alias for logs; no server is set yet."""
    shared_shell.environment["ORCHESTRATOR_LOGS__ALIAS"] = log_alias
    return shared_shell


def killed_worker(shell: Shell) -> None:
    """A worker that has logged, and was ended by SIGKILL."""
    worker = shell.start("worker")
    worker.wait_for_words("slot", COMMAND_TIMEOUT_S)
    # The line is on the terminal a moment before it is in the spool.
    wait_until(lambda: messages(shell, "--grep", "serves .* slot"), COMMAND_TIMEOUT_S, "it is in the spool")
    worker.kill()
    worker.wait()


def messages(shell: Shell, *options: str) -> list[str]:
    shown = shell.type("logs", "tail", "-o", "jsonl", *options)
    assert shown.code == 0, shown.stderr
    return [json.loads(line)["message"] for line in shown.stdout.splitlines()]


def test_logs_of_a_killed_worker_are_read_on_its_host_and_drained_to_a_server(
    shell_with_logs: Shell, elasticsearch_url: str
) -> None:
    shell = shell_with_logs
    killed_worker(shell)
    (said,) = messages(shell, "--grep", "serves .* slot")
    left = shell.type("logs", "status", "-o", "json").json()
    assert [(spool["is_live"], spool["waiting"] > 0) for spool in left["spools"]] == [(False, True)]
    assert "left over" in shell.type("logs", "status").stdout

    shell.environment["ORCHESTRATOR_LOGS__URL"] = elasticsearch_url
    drained = shell.type("logs", "drain", "-o", "json").json()
    assert drained[0]["created"] >= 1
    assert shell.type("logs", "status", "-o", "json").json()["spools"] == []
    wait_until(lambda: messages(shell, "--grep", "serves") == [said], SEARCHABLE_S, "it is found there")
    assert shell.type("logs", "drain", "-o", "json").json()[0]["created"] == 0
    (index,) = shell.type("logs", "status", "-o", "json").json()["indices"]
    assert index["name"].startswith(shell.environment["ORCHESTRATOR_LOGS__ALIAS"])


def test_a_worker_that_ends_leaves_nothing_in_the_spool_if_its_server_answers(
    shell_with_logs: Shell, elasticsearch_url: str
) -> None:
    shell = shell_with_logs
    shell.environment["ORCHESTRATOR_LOGS__URL"] = elasticsearch_url
    worker = shell.start("worker")
    worker.wait_for_words("slot", COMMAND_TIMEOUT_S)
    worker.terminate()
    assert worker.wait().code == 0
    assert shell.type("logs", "status", "-o", "json").json()["spools"] == []
    wait_until(
        lambda: messages(shell, "--grep", "released its jobs"), SEARCHABLE_S, "its last records are there"
    )


def test_an_unreachable_log_server_delays_no_end_and_is_named(shell_with_logs: Shell) -> None:
    shell = shell_with_logs
    shell.environment["ORCHESTRATOR_LOGS__URL"] = "http://127.0.0.1:9"
    worker = shell.start("worker")
    worker.wait_for_words("slot", COMMAND_TIMEOUT_S)
    worker.wait_for_words("logs stay in the spool: http://127.0.0.1:9", COMMAND_TIMEOUT_S)
    worker.terminate()
    assert worker.wait().code == 0
    shown = shell.type("logs", "tail", "--grep", "released its jobs")
    assert "has released its jobs" in shown.stdout
    assert "only the logs on this host are shown" in shown.stderr
    assert shell.type("logs", "drain", "--timeout", "0.5").code == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tail", "--level", "loud"), "trace, debug, info"),
        (("tail", "--grep", "("), "not a valid RE2 regular expression"),
        (("tail", "--since", "soon"), "--since"),
        (("drain",), "logs.url is not set"),
        (("prune",), "logs.url names no Elasticsearch"),
    ],
)
def test_an_invalid_argument_is_one_sentence(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    assert_error(shell.type("logs", *arguments), 2, words)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("LEVEL", "loud", "'loud' is not a level"),
        ("URL", "search:9200", "is not a URL"),
        ("URL", "http://me:secret@search:9200", "a URL must not contain a login"),
        ("ALIAS", "Logs", "cannot name indices"),
        ("TIMEZONE", "Mars/Olympus", "is not a time zone"),
        ("MAX_BYTES", "1", "logs.max_bytes"),
        ("WHEN_FULL", "explode", "logs.when_full"),
    ],
)
def test_an_invalid_setting_is_one_sentence(shell: Shell, name: str, value: str, words: str) -> None:
    shell.environment[f"ORCHESTRATOR_LOGS__{name}"] = value
    said = shell.type("logs", "tail")
    assert_error(said, 2, words)
    assert "secret" not in said.stderr


def test_an_unreadable_certificate_is_one_sentence(shell: Shell) -> None:
    shell.environment["ORCHESTRATOR_LOGS__URL"] = "https://127.0.0.1:9"
    shell.environment["ORCHESTRATOR_LOGS__CA_FILE"] = "/nowhere/ca.pem"
    assert_error(shell.type("logs", "drain"), 1, "/nowhere/ca.pem")


@pytest.mark.parametrize("command", ["tail", "drain", "status", "prune"])
def test_the_help_has_a_worked_example(shell: Shell, command: str) -> None:
    ended = shell.type("logs", command, "--help")
    assert ended.code == 0
    assert f"Example: orchestrator logs {command}" in " ".join(ended.stdout.split())
