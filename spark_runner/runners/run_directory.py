"""The identity of a state directory: workers of one host must share it to reach the same drivers.

<state dir>/runs/<run>/<incarnation>/    mode 0700; files that may hold secrets are 0600
    spark.properties  log4j2.properties  secrets.json  plan.json    written before the start, the plan last
    shim.json  exit.json  shim.log  stdout.log  stderr.log  by the shim
    spark.log  outcome.json  scratch/  spark-warehouse/     by Spark and the driver
    kill.json                                              by a process that requests the end
    work -> another directory        if the driver runs as another user: the files that this user writes
"""

import contextlib
import json
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.logs.files import write_json
from spark_runner.protocol.errors import SparkRunnerError, SubmissionError
from spark_runner.protocol.log_limit import OLDER
from spark_runner.protocol.plain_file import parse_json, read_json, read_plain
from spark_runner.protocol.process import KILL_REQUEST, ProcessId
from spark_runner.runners.base import LogFile, Submission, SubmitRequest
from spark_runner.runners.files import remove_tree

_STATE_ID_FILE = "id"


def state_id(state_dir: Path) -> str:
    """The id of the directory, created if it is missing; raises SubmissionError."""
    path = state_dir / _STATE_ID_FILE
    try:
        if not path.exists():
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = state_dir / f".{_NAME}-{uuid.uuid4().hex}"
            draft.write_text(uuid.uuid4().hex, encoding="utf-8")
            try:
                os.link(draft, path)  # atomic; of several that start at once one wins
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SubmissionError(f"the state directory {state_dir} cannot be used: {error}") from error


YOUNG_SECONDS = 30.0  # shim.json follows the plan after 0.1 s; 30 s covers a heavily overloaded machine
LOG_STREAMS = ("stdout", "stderr", "spark")
SECRETS = "secrets.json"  # their "values"; unlike the plan, it never leaves this host
WORK = "work"
EXECUTOR = ".executor-"  # in the name of a folder of copied logs, between incarnation and number
_MAX_BYTES = 16 << 20  # of an outcome, which holds a preview of each table
_MAX_WORDS_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")


@dataclass(frozen=True, slots=True)
class ShimRecord:
    """The contents of shim.json: the processes of the shim and of its driver."""

    shim: ProcessId
    driver: ProcessId


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The directory of one submission, with typed reads of its files; a missing file is None."""

    path: Path

    @property
    def run(self) -> str:
        """The run: the name of the parent directory."""
        return self.path.parent.name

    @property
    def incarnation(self) -> str:
        """The incarnation: the name of the directory."""
        return self.path.name

    @property
    def work(self) -> Path:
        """The directory of the driver itself: this one, unless it runs as another user."""
        try:
            return (self.path / WORK).readlink()
        except OSError:
            return self.path

    @property
    def users(self) -> set[int]:
        """The users whose processes may belong to it: the driver's user and this process's user."""
        try:
            return {os.geteuid(), self.work.stat().st_uid}
        except OSError:
            return {os.geteuid()}

    @property
    def scratch(self) -> Path:
        """Spark's folder for blocks and shuffle files; worthless after the driver's end."""
        return self.work / "scratch"

    def create(self) -> None:
        """Create it with mode 0700; raises SubmissionError if that fails or it exists already."""
        runs = self.path.parent.parent
        try:
            for directory in (runs.parent, runs, self.path.parent):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700)
        except OSError as error:
            raise SubmissionError(f"cannot create run directory {self.path}: {error.strerror}") from error

    def write(self, name: str, text: str) -> Path:
        """Write one private file for the driver; raises SubmissionError."""
        return self._write(self.work / name, text)

    def write_own(self, name: str, text: str) -> Path:
        """Write one private file that the driver must not read; raises SubmissionError."""
        return self._write(self.path / name, text)

    def _write(self, path: Path, text: str) -> Path:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise SubmissionError(f"cannot write {path}: {error.strerror}") from error
        return path

    def write_plan(self, request: SubmitRequest) -> None:
        """Write the secrets that logs must not show, then the plan; raises SubmissionError."""
        if request.secrets:
            self.write_own(SECRETS, json.dumps({"values": request.secrets}))
        text = json.dumps(request.plan)
        for path in dict.fromkeys((self.work, self.path)):
            self._write(path / "plan.json", text)

    def submitted_ns(self) -> int:
        """When the plan was written, the last step before the start (ns since the epoch)."""
        for path in (self.path / "plan.json", self.path):  # the directory's time until the plan exists
            with contextlib.suppress(FileNotFoundError):
                return path.stat().st_mtime_ns
        return 0  # cleaned up in the meantime

    def is_young(self) -> bool:
        """Whether its shim may not have had time to write shim.json."""
        return abs(time.time() - self.submitted_ns() / 1e9) < YOUNG_SECONDS

    def shim(self) -> ShimRecord | None:
        """The processes of shim and driver; raises OSError, ValueError or KeyError for a damaged file."""
        record = self._read("shim.json")
        if record is None:
            return None
        where = record["boot"], record.get("pid_namespace", "")
        shim, driver = (ProcessId(each["pid"], each["start"], *where) for each in (record, record["child"]))
        return ShimRecord(shim, driver)

    def usage(self) -> dict[str, Any] | None:
        """The resource usage of the processes, measured by the shim; None while it is unknown."""
        try:
            usage = (self._read("exit.json") or {}).get("usage")
        except (OSError, ValueError, AttributeError):
            return None
        return usage if isinstance(usage, dict) else None

    def exit_code(self) -> int | None:
        """The exit code, None while it runs; raises OSError, ValueError or KeyError like `shim`."""
        record = self._read("exit.json")
        return None if record is None else int(record["exit_code"])

    def ended(self) -> str:
        """When the driver ended, as the shim has recorded it; empty while that is unknown."""
        try:
            return str((self._read("exit.json") or {}).get("ended") or "")
        except (OSError, ValueError, AttributeError):
            return ""

    def outcome(self) -> dict[str, Any] | None:
        """The outcome that the driver wrote; None also for a file that is incomplete after its end."""
        try:
            outcome = parse_json(read_of_driver(self.work, "outcome.json"))
        except (OSError, ValueError):
            return None
        return outcome if isinstance(outcome, dict) else None

    def trouble(self) -> str:
        """The last line of the shim's own log; empty in all normal cases."""
        try:
            lines = (
                read_plain(self.path / "shim.log", _MAX_WORDS_BYTES).decode("utf-8", "replace").splitlines()
            )
        except (OSError, ValueError):
            return ""
        return lines[-1] if lines else ""

    def request_kill(self, grace_seconds: float) -> None:
        """Ask the shim, even if it has not started yet, to end the driver.

        The shim checks for this file after writing shim.json and before the driver may run. If the file
        exists and shim.json does not, no user code will run here.
        """
        write_json(self.path / KILL_REQUEST, {"grace_seconds": grace_seconds}, mode=None)

    def is_kill_requested(self) -> bool:
        """Whether any process has called `request_kill`."""
        return (self.path / KILL_REQUEST).exists()

    def drop_scratch(self) -> None:
        """Remove the scratch files that a killed JVM could not remove."""
        remove_tree(self.scratch, ignore_errors=True)  # the cleanup of the run removes the rest

    def _read(self, name: str) -> Any:
        try:
            return read_json(self.path / name)
        except FileNotFoundError:
            return None


def read_of_driver(work: Path, name: str) -> bytes:
    """A file that a driver may have written; raises OSError, ValueError unless it is its own plain file.

    The driver's user may have created anything there: a link to a private file, or an endless pipe.
    """
    return read_plain(work / name, _MAX_BYTES, of=work.stat().st_uid)


def log_owner(folder: str) -> tuple[str, str]:
    """The incarnation and executor of a folder of copied logs; the executor is empty for a driver."""
    incarnation, _, executor = folder.partition(EXECUTOR)
    return incarnation, executor


def log_files(directory: RunDirectory) -> list[LogFile]:
    """The existing logs of one submission, each stream with its older part first."""
    paths = [
        (stream, directory.path / f"{stream}.log{part}") for stream in LOG_STREAMS for part in (OLDER, "")
    ]
    return [LogFile(directory.incarnation, stream, path) for stream, path in paths if path.exists()]


def remove_run(state_dir: Path, run: str, submissions: Iterable[Submission]) -> None:
    """Remove all directories of a run; raises SparkRunnerError while one of its drivers may be running."""
    check_ended(run, submissions)
    try:
        for directory in run_directories(state_dir, run):
            if directory.work != directory.path:
                remove_tree(directory.work)
        remove_tree(run_path(state_dir, run))
    except OSError as error:
        raise SparkRunnerError(f"cannot remove the files of run {run}: {error}") from error


def check_ended(run: str, submissions: Iterable[Submission]) -> None:
    """Raise SparkRunnerError if one of the submissions may be running, so that its files must stay."""
    for submission in submissions:
        if submission.may_run:
            raise SparkRunnerError(f"run {run} is {submission.state}: kill it before its files are removed")


def run_path(state_dir: Path, run: str) -> Path:
    """The directory of all submissions of a run; raises SubmissionError for an invalid file name."""
    return state_dir / "runs" / _checked(run)


def run_directory(state_dir: Path, run: str, incarnation: str) -> RunDirectory:
    """The directory of one submission; raises SubmissionError like `run_path`."""
    return RunDirectory(run_path(state_dir, run) / _checked(incarnation))


def run_directories(state_dir: Path, run: str) -> list[RunDirectory]:
    """The directories of every submission of a run, oldest first."""
    return sorted(
        _directories(run_path(state_dir, run)), key=lambda found: (found.submitted_ns(), found.path)
    )


def _directories(path: Path) -> Iterator[RunDirectory]:
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield RunDirectory(path / entry.name)
    except FileNotFoundError:
        return


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SubmissionError(f"{name!r} cannot name a directory: use letters, digits, `.`, `_` and `-`")
    return name
