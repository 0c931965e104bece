"""What the program of a job prints, shown while it runs: `run`."""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator

from orchestrator.cli.live import Display
from orchestrator.cli.logs.printing import RecordPrinter, text_of
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import stderr_console
from orchestrator.logs.reading.origin import Origin
from orchestrator.logs.reading.query import LogRecord
from orchestrator.model.errors import NoSuchAttempt
from spark_runner.protocol.errors import EXCEPTION_LINE

# The driver prints the error of a program after its end, and PySpark logs each error of a query.
_OF_DRIVER = re.compile(
    rf"^{re.escape(EXCEPTION_LINE)}$"  # of a driver of an earlier version, its first frame:
    r'|Traceback \(most recent call last\):\s+File "[^"\n]*spark_runner/driver/driver\.py", line \d+',
    re.MULTILINE,
)
_OF_PYSPARK = re.compile(
    r'\{"ts": "[^"]{1,40}", "level": "[A-Z]{1,9}", "logger": "(SQL|DataFrame)QueryContext'
)
_LATE_SECONDS = 30.0  # without a further record after the end of the job, whose log may be on a cluster
_LOOK_SECONDS = 0.1


class ProgramOutput:
    """Prints records in a thread: stdout of the program to stdout, stderr to stderr.

    What the driver prints about the error of a program is left out, and what PySpark logs of it: `run` shows
    the frames of the program at the end, and `job logs` has all.
    """

    def __init__(self, records: Iterator[LogRecord], screen: Display, job_id: str) -> None:
        self._records, self._screen, self._job_id = records, screen, job_id
        self._printer = RecordPrinter(OutputFormat.TABLE, prefix=False, is_raw=True)
        self._on_screen = screen.is_live and sys.stdout.isatty()
        self._failed: object = None  # the number of the attempt that has failed
        self._shown = 0  # records
        self._is_writing = False  # which takes as long as the reader of stdout likes
        self._stopping = threading.Event()
        self._unwritten: OSError | None = None  # stdout cannot be written
        self._unread: Exception | None = None  # the log cannot be read
        self._thread = threading.Thread(target=self._run, name="program-output", daemon=True)
        self._thread.start()

    def finish(self, interrupted: Callable[[], bool]) -> None:
        """Wait for the last records of a job that has ended; raises OSError if stdout cannot be written."""
        seen, since = -1, 0.0
        while self._thread.is_alive() and not interrupted():
            self._thread.join(_LOOK_SECONDS)
            if self._shown != seen or self._is_writing:
                seen, since = self._shown, time.monotonic()
            if time.monotonic() - since > _LATE_SECONDS:
                break
        is_whole = not self._thread.is_alive()
        self.stop()
        if self._unwritten is not None:
            raise self._unwritten
        if is_whole and self._unread is None:
            self._printer.close()
            return
        why = self._unread or ("interrupted" if interrupted() else "the end of its log does not come")
        words = f"not all output is shown: {why}; `orchestrator job logs {self._job_id}` has all"
        if self._screen.is_live:
            self._screen.print(words)
        else:  # even with `--quiet`: stdout is not complete
            stderr_console().print(words, markup=False)

    def stop(self) -> None:
        """Show no further record."""
        self._stopping.set()
        self._thread.join(_LOOK_SECONDS)

    def _run(self) -> None:
        try:
            for record in self._records:
                if self._stopping.is_set():
                    return
                if not self._is_plumbing(record) and not self._show(record):
                    return
                self._shown += 1
        except NoSuchAttempt:  # the job ended before its first attempt
            return
        except Exception as error:  # noqa: BLE001 - the job goes on, and `finish` says it
            self._unread = error

    def _is_plumbing(self, record: LogRecord) -> bool:
        if record.origin is not Origin.ERR:
            return False
        text, attempt = text_of(record), record.document.get("job.attempt")
        if _OF_DRIVER.search(text):
            self._failed = attempt
        return (attempt is not None and attempt == self._failed) or _OF_PYSPARK.match(text) is not None

    def _show(self, record: LogRecord) -> bool:
        """Write a record; False if stdout cannot be written."""
        self._is_writing = True
        try:
            if record.origin is Origin.OUT and not self._on_screen:
                self._printer.print(record)
                self._printer.flush()
            else:
                self._screen.print(text_of(record))
        except OSError as error:
            self._unwritten = error
            return False
        finally:
            self._is_writing = False
        return True
