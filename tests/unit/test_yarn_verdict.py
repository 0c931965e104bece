from dataclasses import replace

import pytest

from spark_runner.protocol import exit_codes
from spark_runner.runners.base import RunState
from spark_runner.runners.yarn.api import YarnApplication
from spark_runner.runners.yarn.verdict import refusal, verdict_of

# Diagnostics of a real YARN 3.5, shortened.
AM_EXIT = (
    "Application application_1_0009 failed 1 times (global limit =2; local limit is =1) due to AM Container "
    "for appattempt_1_0009_000001 exited with  exitCode: {code}\nFailing this attempt.Diagnostics: "
    "[2026-11-21 18:10:30.052]{words}\n\n[2026-11-21 18:10:30.058]Container exited with a non-zero exit code "
    "{code}. Error file: prelaunch.err.\nLast 4096 bytes of stderr :\n{log}\n"
)
BEYOND = (
    "Container [pid=1,containerID=container_1] is running 61440B beyond the 'PHYSICAL' memory limit. Current "
    "usage: 896.1 MB of 896 MB physical memory used; 3.9 GB of 1.8 GB virtual memory used. Killing container."
    "\nDump of the process-tree for container_1 :\n\t|- PID PPID ... CMDLINE\n\t|- 1 0 ... java -Dsecret=x\n"
)
FULL = (
    "org.apache.hadoop.security.AccessControlException: Queue root.full already has 0 applications, cannot "
    "accept submission of application: application_1_0003"
)
STOPPED = (
    "org.apache.hadoop.security.AccessControlException: Queue root.stopped is STOPPED. Cannot accept "
    "submission of application: application_1_0004"
)
UNKNOWN_QUEUE = "Application application_1_0002 submitted by user root to unknown queue: nope"
SUBMITTED = (
    'Exception in thread "main" org.apache.hadoop.yarn.exceptions.YarnException: Failed to submit x : '
)
TOO_LARGE = (
    'Exception in thread "main" java.lang.IllegalArgumentException: Required AM memory (102400+10240 MB) is '
    "above the max threshold (8192 MB) of this cluster! Please check the values of 'yarn.scheduler.maximum-"
    "allocation-mb' and/or 'yarn.nodemanager.resource.memory-mb'.\n\tat org.apache.spark.deploy.yarn.Client\n"
)


def application(state: str, final_status: str, diagnostics: str = "") -> YarnApplication:
    return YarnApplication("application_1_1", state, final_status, diagnostics, frozenset(), 0)


@pytest.mark.parametrize("state", ["NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"])
def test_a_process_that_has_not_ended_is_running(state: str) -> None:
    assert verdict_of(application(state, "UNDEFINED")).state is RunState.RUNNING


@pytest.mark.parametrize(
    ("finished_ms", "at"), [(0, ""), (1_700_000_000_500, "2023-11-14T22:13:20.500000+00:00"), (10**18, "")]
)
def test_the_time_of_an_end_is_that_of_yarn(finished_ms: int, at: str) -> None:
    assert replace(application("FAILED", "FAILED"), finished_ms=finished_ms).finished == at


def test_success_is_what_the_application_says_of_itself() -> None:
    verdict = verdict_of(application("FINISHED", "SUCCEEDED"))
    assert (verdict.state, verdict.exit_code, verdict.failure) == (RunState.EXITED, 0, None)


@pytest.mark.parametrize(
    ("state", "final_status"),
    [
        ("FINISHED", "UNDEFINED"),
        ("FINISHED", "ENDED"),
        ("FAILED", "SUCCEEDED"),
        ("FAILED", "UNDEFINED"),
        ("SOMETHING_NEW", "FAILED"),
        ("", ""),
    ],
)
def test_unknown_states_are_no_verdict(state: str, final_status: str) -> None:
    verdict = verdict_of(application(state, final_status, "User application exited with status 3"))
    assert (verdict.state, verdict.exit_code, verdict.failure) == (RunState.UNKNOWN, None, None)


@pytest.mark.parametrize("code", [1, 3, exit_codes.NO_CONTACT, exit_codes.SUPERSEDED, 137])
def test_the_exit_code_of_the_program_is_kept(code: int) -> None:
    verdict = verdict_of(application("FINISHED", "FAILED", f"User application exited with status {code}"))
    assert (verdict.state, verdict.exit_code, verdict.failure) == (RunState.EXITED, code, None)


@pytest.mark.parametrize("code", [exit_codes.NO_CONTACT, exit_codes.SUPERSEDED])
def test_the_exit_code_of_a_driver_that_ended_before_its_session_is_read_from_the_log_of_its_master(
    code: int,
) -> None:
    log = f"ERROR ApplicationMaster: User application exited with status {code}\nFinal app status: FAILED"
    words = AM_EXIT.format(code=13, words="Exception from container-launch.", log=log)
    verdict = verdict_of(application("FAILED", "FAILED", words))
    assert (verdict.exit_code, verdict.failure) == (code, None)


@pytest.mark.parametrize(
    ("code", "words", "error_class", "kind"),
    [
        (-104, BEYOND, "memory", "MemoryLimit"),
        (-103, BEYOND.replace("PHYSICAL", "VIRTUAL"), "memory", "MemoryLimit"),
        (
            143,
            "Container is running beyond physical memory limits. Current usage: 1 GB",
            "memory",
            "MemoryLimit",
        ),
        (137, "Container killed on request. Exit code is 137", "memory", "Killed"),
        (-100, "Container released on a *lost* node", "infrastructure", "NodeLost"),
        (-101, "No space available in any of the local directories.", "infrastructure", "DisksFailed"),
        (-102, "Container preempted by scheduler", "infrastructure", "Preempted"),
        (143, "Container killed on request. Exit code is 143", "infrastructure", "Terminated"),
        (13, "Exception from container-launch.", "infrastructure", "ApplicationMaster"),
        (-1000, "File file:/x does not exist", "infrastructure", "ApplicationMaster"),
    ],
)
def test_the_reason_for_the_end_of_the_container_is_reported(
    code: int, words: str, error_class: str, kind: str
) -> None:
    verdict = verdict_of(application("FAILED", "FAILED", AM_EXIT.format(code=code, words=words, log="x")))
    assert verdict.state is RunState.EXITED
    assert verdict.failure is not None
    assert (verdict.failure.error_class, verdict.failure.type) == (error_class, kind)
    assert verdict.is_end_observed is (kind != "NodeLost"), "what was on a lost node may run there on"
    assert words.partition("\n")[0] in verdict.failure.message


def test_the_end_of_an_application_that_yarn_gave_up_as_silent_is_unobserved() -> None:
    words = (
        "Application application_1_1 failed 1 times (global limit =2; local limit is =1) due to "
        "ApplicationMaster for attempt appattempt_1_1_000001 timed out. Failing the application."
    )
    verdict = verdict_of(application("FAILED", "FAILED", words))
    assert (verdict.state, verdict.is_end_observed) == (RunState.EXITED, False)
    assert verdict.failure is not None
    assert verdict.failure.error_class == "infrastructure"


def test_words_that_a_program_wrote_into_its_log_decide_nothing() -> None:
    log = "User application exited with status 0\nis running beyond the 'PHYSICAL' memory limit"
    words = AM_EXIT.format(code=-102, words="Container preempted by scheduler", log=log)
    verdict = verdict_of(application("FAILED", "FAILED", words))
    assert verdict.exit_code is None
    assert verdict.failure is not None
    assert verdict.failure.type == "Preempted"
    assert "status 0" not in verdict.detail


def test_arguments_of_processes_are_not_shown() -> None:
    words = AM_EXIT.format(code=-104, words=BEYOND, log="")
    assert "secret" not in verdict_of(application("FAILED", "FAILED", words)).detail


@pytest.mark.parametrize(("state", "final_status"), [("KILLED", "KILLED"), ("FINISHED", "KILLED")])
def test_an_application_that_was_killed_in_yarn_is_reported_so(state: str, final_status: str) -> None:
    words = "Application application_1_1 was killed by user root at 127.0.0.1"
    verdict = verdict_of(application(state, final_status, words))
    assert (verdict.state, verdict.exit_code) == (RunState.EXITED, exit_codes.KILLED)
    assert verdict.failure is not None
    assert (verdict.failure.error_class, verdict.failure.type) == ("killed", "Killed")
    assert verdict.failure.message == words


@pytest.mark.parametrize(
    ("words", "kind", "is_passing"),
    [
        (FULL, "QueueFull", True),
        (STOPPED, "QueueStopped", True),
        (UNKNOWN_QUEUE, "UnknownQueue", False),
        (TOO_LARGE, "Resources", False),
    ],
)
@pytest.mark.parametrize("before", ["", SUBMITTED, "WARN something\n" + SUBMITTED])
def test_a_refusal_is_of_the_class_submission_and_in_words(
    before: str, words: str, kind: str, *, is_passing: bool
) -> None:
    failure = refusal(before + words)
    assert failure is not None
    assert (failure.error_class, failure.type, failure.is_passing) == ("submission", kind, is_passing)
    assert "Exception" not in failure.message
    assert "\n" not in failure.message
    assert failure.message


def test_an_application_that_its_queue_refused_failed_by_submission() -> None:
    failure = verdict_of(application("FAILED", "FAILED", FULL)).failure
    assert failure is not None
    assert (failure.error_class, failure.type) == ("submission", "QueueFull")


def test_other_words_are_no_refusal() -> None:
    assert refusal("java.lang.IllegalStateException: no idea") is None


def test_another_reason_for_the_failure_of_an_application_is_reported() -> None:
    failure = verdict_of(
        application("FINISHED", "FAILED", "Max number of executor failures (3) reached")
    ).failure
    assert failure is not None
    assert (failure.error_class, failure.message) == (
        "infrastructure",
        "Max number of executor failures (3) reached",
    )
