"""One session with ZooKeeper: the only package that imports kazoo."""

from queues.session.session import Posted, ReplyLost, Session, SessionState, Wake, refusal
from queues.session.settings import SessionSettings
from queues.session.stat import Stat

__all__ = ["Posted", "ReplyLost", "Session", "SessionSettings", "SessionState", "Stat", "Wake", "refusal"]
