"""Try one target until an input breaks a promise or time is up: python -m tests.fuzz script --seconds 60.

The folder of findings keeps an input that fails, and the next run tries it first. Limits of each input: 5 s
and 512 MiB. Exit code 0: no input failed.
"""

import argparse
import importlib
import logging
import sys
import tempfile
from pathlib import Path

import atheris
from loguru import logger

TARGETS = ("definition", "script", "settings", "nodes", "log_lines")
_HERE = Path(__file__).parent
SECONDS_PER_INPUT = 5
MEMORY_MB = 512
MAX_BYTES = 64 * 1024
"""Of an input: growth faster than linear shows at this size."""


def main() -> None:
    """Run one target; ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=[*TARGETS, "planted"])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the random numbers; 0 = another one each time"
    )
    parser.add_argument("--corpus", type=Path, help="a folder that keeps what reached new code")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    given = parser.parse_args()
    with atheris.instrument_imports(include=["orchestrator", "queues", "spark_runner", "yaml", "tests.fuzz"]):
        target = importlib.import_module(f"tests.fuzz.targets.{given.target}")
    logging.disable()  # else each invalid input is logged
    logger.remove()
    target.try_input(b"")  # so that starting a server and late imports do not count as the time of an input
    given.findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="orchestrator-fuzz-") as folder:
        corpus = given.corpus or Path(folder)
        corpus.mkdir(parents=True, exist_ok=True)
        options = [
            f"-max_total_time={given.seconds}",
            f"-timeout={SECONDS_PER_INPUT}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-max_len={MAX_BYTES}",
            "-len_control=5",  # soon tries long inputs
            f"-dict={_HERE / 'dictionaries' / given.target}",
            f"-artifact_prefix={given.findings / given.target}-",
            f"-seed={given.seed}",
        ]
        folders = (corpus, _HERE / "seeds" / given.target, given.findings)
        atheris.Setup([sys.argv[0], *options, *map(str, folders)], target.try_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
