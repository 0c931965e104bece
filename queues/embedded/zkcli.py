"""The command line of ZooKeeper's own client, with nothing but the answer on stdout."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from queues.embedded.java import QUICK_START, find_jars, find_java

CLIENT_CLASS = "org.apache.zookeeper.ZooKeeperMain"

FILTER = Path(__file__).with_name("zkcli_filter.py")

LOG_CONFIG = Path(__file__).with_name("zkcli_log4j2.properties")

CONNECT_TIMEOUT_MS = 10_000
"""For one command: how long to look for a member that answers; asking by hand, one stays and waits."""


def zkcli_command(hosts: str, args: Sequence[str]) -> list[str]:
    """Return the argv that runs zkCli on `hosts` (a chroot at the end is allowed), for os.execv.

    With `args`, one command is run: its answer is on stdout, warnings and errors are on stderr, and the
    exit code is zkCli's. Without, zkCli asks for commands. CLIENT_JVMFLAGS is honoured as in zkCli.sh:
    settings for TLS and SASL go there. Raises JavaMissing, JarsMissing.
    """
    client = [
        str(find_java().path),
        *QUICK_START,
        f"-Dlog4j2.configurationFile={LOG_CONFIG}",
        *shlex.split(os.environ.get("CLIENT_JVMFLAGS", "")),
        *("-cp", str(find_jars() / "*"), CLIENT_CLASS, "-server", hosts),
    ]
    if not args:
        return client
    # Without waiting for the connection, the command fails when the first server tried is down.
    wait = ["-timeout", str(CONNECT_TIMEOUT_MS), "-waitforconnection"]
    return [sys.executable, "-I", "-S", str(FILTER), *client, *wait, *args]
