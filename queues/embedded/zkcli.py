"""The command line of ZooKeeper's own client, with nothing but the answer on stdout."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from queues.embedded.java import QUICK_START, find_jars, find_java
from queues.embedded.login_proxy import logged_in
from queues.embedded.zkcli_filter import SASL
from queues.private_directory import write_private
from queues.session import Login, SessionSettings

CLIENT_CLASS = "org.apache.zookeeper.ZooKeeperMain"

FILTER = Path(__file__).with_name("zkcli_filter.py")

_SECURE = "zookeeper.client.secure"

LOG_CONFIG = Path(__file__).with_name("zkcli_log4j2.properties")

CONNECT_TIMEOUT_MS = 10_000
"""For one command: how long to look for a member that answers; asking by hand, one stays and waits."""


JAAS = """\
Client {{
  org.apache.zookeeper.server.auth.DigestLoginModule required username="{user}" password="{password}";
}};
"""


def run_zkcli(settings: SessionSettings, args: Sequence[str]) -> int:
    """Run zkCli with what `settings` say of servers, logins and TLS; returns its exit code.

    No password is in an argument or in the environment. Where CLIENT_JVMFLAGS say how to speak TLS, zkCli
    does so itself, and is not logged in by digest. Raises OSError, JavaMissing, JarsMissing.
    """
    with ExitStack() as stack:
        options, hosts = list[str](), settings.hosts
        if settings.sasl is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchestrator-")))
            write_private(folder / "jaas.conf", _jaas(settings.sasl))
            # Java's client counts DIGEST-MD5 among what is not to be used, unless told.
            options = [
                f"{SASL}{folder / 'jaas.conf'}",
                "-Dzookeeper.fips-mode=false",
            ]
        if (settings.digest or settings.tls) and _SECURE not in os.environ.get("CLIENT_JVMFLAGS", ""):
            hosts = stack.enter_context(logged_in(settings))
        with subprocess.Popen(zkcli_command(hosts, args, options)) as client:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both of us, and is for zkCli
            signal.signal(signal.SIGTERM, lambda *_: client.terminate())
        return client.returncode if client.returncode >= 0 else 128 - client.returncode


def _jaas(login: Login) -> str:
    user, password = (text.replace("\\", r"\\").replace('"', r"\"") for text in (login.user, login.secret()))
    return JAAS.format(user=user, password=password)


def zkcli_command(hosts: str, args: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Return the argv that runs zkCli on `hosts` (a chroot at the end is allowed).

    With `args`, one command is run: its answer is on stdout, warnings and errors are on stderr, and the
    exit code is zkCli's. Without, zkCli asks for commands. CLIENT_JVMFLAGS is honoured as in zkCli.sh:
    settings for TLS and SASL go there. Raises JavaMissing, JarsMissing.
    """
    client = [
        str(find_java().path),
        *QUICK_START,
        f"-Dlog4j2.configurationFile={LOG_CONFIG}",
        *options,
        *shlex.split(os.environ.get("CLIENT_JVMFLAGS", "")),
        *("-cp", str(find_jars() / "*"), CLIENT_CLASS, "-server", hosts),
    ]
    if not args:
        return client
    # Without waiting for the connection, the command fails when the first server tried is down.
    wait = ["-timeout", str(CONNECT_TIMEOUT_MS), "-waitforconnection"]
    return [sys.executable, "-I", "-S", str(FILTER), *client, *wait, *args]
