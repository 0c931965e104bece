"""The smallest actor: writes its node in one multi after the other, and records each result.

`python -m tests.chaos.echo_actor NAME FOLDER HOSTS ROOT SESSION_SECONDS`. It uses no queues; the tests
of the nemesis run it.
"""

import sys
import threading
import time
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.retry import KazooRetry

from tests.chaos.actor_control import ShiftedClock, follow_commands, write_session
from tests.chaos.actor_process import STOP_COMMAND
from tests.chaos.events import Kind
from tests.chaos.history import History
from tests.chaos.nemesis import CLOCK_COMMAND

PAUSE_S = 0.05
REPLY_TIMEOUT_S = 30


def main(name: str, folder: Path, hosts: str, root: str, session_s: float) -> None:
    clock, stopping = ShiftedClock(), threading.Event()
    clock.install()
    commands = {CLOCK_COMMAND: clock.set, STOP_COMMAND: lambda _: stopping.set()}
    follow_commands(sys.stdin, commands, at_end=stopping.set)
    client = KazooClient(hosts, timeout=session_s, connection_retry=KazooRetry(-1, delay=0.05, max_delay=0.5))
    client.start(timeout=30)
    written = None
    with History(folder, name) as history:
        while not stopping.wait(PAUSE_S):
            if client.client_id != written and client.client_id is not None:
                written = client.client_id
                write_session(folder / f"{name}.session", *written)
            now_ms = time.time_ns() // 1_000_000
            history.add(Kind.STEP_SENT, id=name, wall_ms=now_ms)
            try:
                kind = _write(client, f"{root}/jobs/00/{name}", name)
            except KazooException as error:
                history.add(Kind.LOST, id=name, extra={"why": type(error).__name__})
            else:
                history.add(kind, id=name, wall_ms=now_ms)
    client.stop()
    client.close()


def _write(client: KazooClient, path: str, name: str) -> Kind:
    transaction = client.transaction()
    transaction.set_data(path, f'{{"run_key": "{name}"}}'.encode())
    (result,) = transaction.commit_async().get(timeout=REPLY_TIMEOUT_S)
    return Kind.STEP_REFUSED if isinstance(result, Exception) else Kind.STEP_ACKED


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5]))
