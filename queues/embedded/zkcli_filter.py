"""Runs zkCli for one command and omits the lines that it prints on stdout before the answer.

On a terminal, control characters in the answer are escaped, because any client can write any bytes to a node.

Run as `python -I -S zkcli_filter.py JAVA ARGUMENT...`. ZooKeeperMain cannot suppress its greeting,
"Connecting to ..." and the event of the connection, and a pipe (`zkcli get /x | jq`) cannot use them.
"""

import re
import shutil
import signal
import subprocess
import sys
from itertools import chain
from typing import IO

GREETING = b"Connecting to "
SASL = "-Djava.security.auth.login.config="
LOGIN_EVENT = (b"\n", b"WATCHER::", b"\n", b"WatchedEvent state:SaslAuthenticated")
EVENT = (b"WATCHER::", b"WatchedEvent state:")
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")  # the latter are C1, in UTF-8


def main(command: list[str]) -> int:
    """Run `command`, copy its stdout from the answer on, and return its exit code."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        # Ctrl-C reaches both processes; a SIGTERM to this process is passed on to the client.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: client.terminate())
        assert client.stdout is not None  # noqa: S101 - for mypy: asked for above
        try:
            answer = skip_greeting(client.stdout)
            if not answer and any(argument.startswith(SASL) for argument in command):
                answer = skip_login(client.stdout)
            if sys.stdout.isatty():
                for line in chain([answer], client.stdout):
                    sys.stdout.buffer.write(escaped(line))
            else:
                sys.stdout.buffer.write(answer)
                sys.stdout.buffer.flush()
                shutil.copyfileobj(client.stdout, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # the reader has closed the pipe
            client.terminate()
            sys.stdout = None  # Python must not flush the rest of its buffer at exit
    return client.returncode if client.returncode >= 0 else 128 - client.returncode


def escaped(line: bytes) -> bytes:
    """The line with its control characters escaped."""
    return CONTROL.sub(lambda found: b"\\x%02x" % found[0][-1], line)


def skip_greeting(output: IO[bytes]) -> bytes:
    """Read up to the end of the greeting; return the first line that is not part of it, if one was read.

    The last line of the greeting is the event of the connection; all later lines are the answer, even if they
    look like an event. Without a connection there is no such event.
    """
    for line in output:
        if line.startswith(EVENT[1]):
            return b""
        if not (line == b"\n" or line.startswith((GREETING, EVENT[0]))):
            return line
    return b""


def skip_login(output: IO[bytes]) -> bytes:
    """Skip the event of a login by SASL; return the bytes read if they are no such event."""
    read = b""
    for expected in LOGIN_EVENT:
        line = output.readline()
        read += line
        if not line.startswith(expected):
            return read
    return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
