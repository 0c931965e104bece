"""The command `orchestrator`."""

import os
import sys

from orchestrator.cli.interrupt import Interrupt

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while the program is still loading ends it quietly, too."""
    for name in ("stdin", "stdout", "stderr"):
        if (
            getattr(sys, name) is None
        ):  # closed by who called us: there is nothing to read, and nobody to tell
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115 - for good
    Interrupt.remember()
    try:
        from orchestrator.cli.app import run_app  # noqa: PLC0415 - loading takes a moment: inside the try

        sys.exit(run_app())
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except Exception:
        if (asked := Interrupt.asked()) is None:
            raise
        sys.exit(asked)


if __name__ == "__main__":
    main()
