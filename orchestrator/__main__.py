"""The command `orchestrator`."""

import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while the program is still loading ends it quietly, too."""
    try:
        from orchestrator.cli.app import run_app  # noqa: PLC0415 - loading takes a moment: inside the try

        sys.exit(run_app())
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
