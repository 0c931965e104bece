"""One session with ZooKeeper: the only package that imports kazoo."""

from queues.operations import Grant
from queues.session.boottime import boottime, boottime_ns
from queues.session.contact import SessionState
from queues.session.listeners import Wake
from queues.session.posted import Posted, ReplyLost, refusal
from queues.session.rights import Denied, Rights, Seen
from queues.session.session import Session
from queues.session.settings import Acl, Login, SessionSettings, Tls
from queues.session.stat import Stat
from queues.session.whoami import Identity, printable

__all__ = [
    "Acl",
    "Denied",
    "Grant",
    "Identity",
    "Login",
    "Posted",
    "ReplyLost",
    "Rights",
    "Seen",
    "Session",
    "SessionSettings",
    "SessionState",
    "Stat",
    "Tls",
    "Wake",
    "boottime",
    "boottime_ns",
    "printable",
    "refusal",
]
