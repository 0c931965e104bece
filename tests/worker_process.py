"""A worker as a process of its own, for tests that kill it: `tests.worker_process HOSTS ROOT STATE_DIR`."""

import sys
import threading
from pathlib import Path

from orchestrator.settings import Settings
from tests.jobs_support import Office

if __name__ == "__main__":
    hosts, root, state_dir = sys.argv[1:]
    settings = Settings(zookeeper_hosts=hosts, root=root, state_dir=Path(state_dir), session_timeout=4.0)
    Office(settings).worker()
    threading.Event().wait()
