"""One session with ZooKeeper: the only package that imports kazoo."""

from queues.model.operations import Grant
from queues.session.contact import SessionState, Wake, boottime, boottime_ns
from queues.session.requests import Posted, ReplyLost, refusal
from queues.session.rights import Denied, Identity, Rights, Seen, printable
from queues.session.session import Session
from queues.session.settings import Acl, Login, SessionSettings, Tls
from queues.session.wire import Stat

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
