"""One session with ZooKeeper: the only package that imports kazoo."""

from queues.session.boottime import boottime, boottime_ns
from queues.session.contact import SessionState
from queues.session.listeners import Wake
from queues.session.posted import Posted, ReplyLost, refusal
from queues.session.session import Session
from queues.session.settings import Acl, Login, SessionSettings, Tls
from queues.session.stat import Stat

__all__ = [
    "Acl",
    "Login",
    "Posted",
    "ReplyLost",
    "Session",
    "SessionSettings",
    "SessionState",
    "Stat",
    "Tls",
    "Wake",
    "boottime",
    "boottime_ns",
    "refusal",
]
