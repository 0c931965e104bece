"""The command `orchestrator`."""

import os
import sys

from orchestrator.cli.interrupt import Interrupt

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback, also while it loads."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the calling process has closed it
            # PTH123, SIM115: it stays open until the process ends.
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115
    Interrupt.record_sigint()
    try:
        from orchestrator.cli.app import run_app  # noqa: PLC0415 - lazy: Ctrl-C while it loads is handled, too

        sys.exit(run_app())
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except Exception:
        if (asked := Interrupt.received_exit_code()) is None:
            raise
        sys.exit(asked)


if __name__ == "__main__":
    main()
