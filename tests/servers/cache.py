"""Cache of server programs, downloaded or built once for all checkouts of this machine."""

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """The folder that all checkouts of this machine share."""
    # Some servers run as users that cannot read the folders of root.
    caches = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
    cache = Path(os.environ.get("ORCHESTRATOR_TEST_CACHE") or caches / "spark-job-orchestrator-tests")
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache; if it is missing, `make` fills it.

    Concurrent callers wait for the process that makes it. An unfinished folder is never visible.
    """
    cache = cache_folder()
    made = cache / name
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                unfinished = Path(folder, name)
                unfinished.mkdir(mode=0o755)
                make(unfinished)
                unfinished.rename(made)
    return made
