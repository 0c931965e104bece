"""The time of a command as a whole process, compared with its unavoidable imports.

`orchestrator job submit` against `import kazoo.client, pydantic`, and `orchestrator --help` against `import
typer`, alternating, with a running ZooKeeper. Last line: JSON, medians and their ratios.

    python benchmarks/command_line.py [--rounds 15]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from queues import EmbeddedZooKeeper, ServerConfig

ORCHESTRATOR = [sys.executable, "-m", "orchestrator"]
SCRIPT = Path(__file__).parent.parent / "examples" / "flights.sql"


def seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Seconds of one process."""
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> None:
    """Alternate all four, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    commands = {
        "import_kazoo_pydantic": [sys.executable, "-c", "import kazoo.client, pydantic"],
        "job_submit": [*ORCHESTRATOR, "job", "submit", str(SCRIPT)],
        "import_typer": [sys.executable, "-c", "import typer"],
        "help": [*ORCHESTRATOR, "--help"],
    }
    taken: defaultdict[str, list[float]] = defaultdict(list)
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedZooKeeper(ServerConfig(Path(directory) / "zookeeper", long_run=True)) as server,
    ):
        environment = {**os.environ, "ZOOKEEPER_HOSTS": server.hosts, "ORCHESTRATOR_STATE_DIR": directory}
        # Installed packages are compiled by pip, a checkout by its first command, unless disabled.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(arguments.rounds + 1):
            for name, command in commands.items():
                spent = seconds(command, environment)
                if number:  # the first round compiles and fills the caches
                    taken[name].append(spent)
    medians = {name: statistics.median(spent) for name, spent in taken.items()}
    ratios = {
        "submit_ratio": medians["job_submit"] / medians["import_kazoo_pydantic"],
        "help_ratio": medians["help"] / medians["import_typer"],
    }
    print(json.dumps({**{f"{name}_seconds": spent for name, spent in medians.items()}, **ratios}))


if __name__ == "__main__":
    main()
