"""The command `orchestrator`."""

import gc
import os
import sys

from orchestrator.cli.interrupt import Interrupt

EXIT_INTERRUPTED = 130
# Python's 700 makes it search all objects for garbage dozens of times while it only loads modules.
_ALLOCATIONS_PER_COLLECTION = 50_000


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback, also while it loads."""
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the calling process has closed it
            # PTH123, SIM115: it stays open until the process ends.
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115
    Interrupt.record_sigint()
    try:
        from orchestrator.cli.app import run_app  # noqa: PLC0415 - lazy: Ctrl-C while it loads is handled, too

        code = run_app()
        _flush()
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except Exception:
        if (asked := Interrupt.received_exit_code()) is None:
            raise
        sys.exit(asked)


def _flush() -> None:
    """Write what is left of the output, so that Python reports no closed pipe at its end."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                os.dup2(nowhere, stream.fileno())


if __name__ == "__main__":
    main()
