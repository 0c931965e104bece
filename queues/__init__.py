"""A distributed ID queue on ZooKeeper; it is independent of jobs and Spark.

The names below are the public API: other packages import them from here and from no inner module. Each name
is loaded when it is first used, so a program that only puts items loads no more than it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queues.admin.scrubber import Repair as Repair
    from queues.admin.scrubber import Scrubber as Scrubber
    from queues.admin.scrubber import ScrubReport as ScrubReport
    from queues.admin.scrubber import Unrepaired as Unrepaired
    from queues.claims.claim import Claim as Claim
    from queues.claims.claim import Transition as Transition
    from queues.claims.claim_attempt import Candidate as Candidate
    from queues.claims.claimer import Claimer as Claimer
    from queues.claims.transitions import run_transitions as run_transitions
    from queues.consumer.consumer import Consumer as Consumer
    from queues.consumer.heartbeat import STUCK_SECONDS as STUCK_SECONDS
    from queues.consumer.heartbeat import Heartbeat as Heartbeat
    from queues.dispatch.dispatcher import Dispatcher as Dispatcher
    from queues.dispatch.dispatcher import InFlight as InFlight
    from queues.dispatch.dispatcher import Prepared as Prepared
    from queues.dispatch.handler_pool import Action as Action
    from queues.dispatch.handler_pool import Done as Done
    from queues.dispatch.handler_pool import Handler as Handler
    from queues.dispatch.handler_pool import HandlerPool as HandlerPool
    from queues.dispatch.handler_pool import Move as Move
    from queues.dispatch.handler_pool import Requeue as Requeue
    from queues.dispatch.handler_pool import Retries as Retries
    from queues.dispatch.handler_threads import HandlerThreads as HandlerThreads
    from queues.dispatch.puller import Puller as Puller
    from queues.embedded.config import STATE_FOLDER as STATE_FOLDER
    from queues.embedded.config import ServerConfig as ServerConfig
    from queues.embedded.directory import EMBEDDED_USER as EMBEDDED_USER
    from queues.embedded.directory import is_server_starting as is_server_starting
    from queues.embedded.directory import local_settings as local_settings
    from queues.embedded.directory import login_of as login_of
    from queues.embedded.directory import running_server as running_server
    from queues.embedded.ensemble import Ensemble as Ensemble
    from queues.embedded.ensemble import ensemble_login as ensemble_login
    from queues.embedded.ensemble import own_id as own_id
    from queues.embedded.ensemble import parse_members as parse_members
    from queues.embedded.java import find_jars as find_jars
    from queues.embedded.java import find_java as find_java
    from queues.embedded.packets import send_four_letter_word as send_four_letter_word
    from queues.embedded.ports import free_ports as free_ports
    from queues.embedded.server import EmbeddedZooKeeper as EmbeddedZooKeeper
    from queues.embedded.zkcli import run_zkcli as run_zkcli
    from queues.model.codec import decode as decode
    from queues.model.codec import encode as encode
    from queues.model.codec import new_nonce as new_nonce
    from queues.model.codec import new_uuid as new_uuid
    from queues.model.codec import timestamp as timestamp
    from queues.model.errors import AccessDenied as AccessDenied
    from queues.model.errors import ClaimLost as ClaimLost
    from queues.model.errors import Conflict as Conflict
    from queues.model.errors import CorruptRecord as CorruptRecord
    from queues.model.errors import DataDirectoryInUse as DataDirectoryInUse
    from queues.model.errors import Error as Error
    from queues.model.errors import IdTaken as IdTaken
    from queues.model.errors import InvalidEnsemble as InvalidEnsemble
    from queues.model.errors import InvalidLimit as InvalidLimit
    from queues.model.errors import InvalidName as InvalidName
    from queues.model.errors import InvalidPayload as InvalidPayload
    from queues.model.errors import ItemHeld as ItemHeld
    from queues.model.errors import ItemNotFound as ItemNotFound
    from queues.model.errors import NotClaimed as NotClaimed
    from queues.model.errors import OutcomeUnknown as OutcomeUnknown
    from queues.model.errors import PoolInUse as PoolInUse
    from queues.model.errors import PortTaken as PortTaken
    from queues.model.errors import PutsFailed as PutsFailed
    from queues.model.errors import QueueError as QueueError
    from queues.model.errors import QueueFull as QueueFull
    from queues.model.errors import Refusal as Refusal
    from queues.model.errors import Refused as Refused
    from queues.model.errors import ServerEnded as ServerEnded
    from queues.model.errors import ServerNotRunning as ServerNotRunning
    from queues.model.errors import ServerStartFailed as ServerStartFailed
    from queues.model.errors import SessionLost as SessionLost
    from queues.model.errors import TooLarge as TooLarge
    from queues.model.errors import TooManyPools as TooManyPools
    from queues.model.errors import UnknownQueue as UnknownQueue
    from queues.model.errors import Unreachable as Unreachable
    from queues.model.events import Event as Event
    from queues.model.events import EventKind as EventKind
    from queues.model.names import DEFAULT_POOL as DEFAULT_POOL
    from queues.model.names import LOW_LANE_SUFFIX as LOW_LANE_SUFFIX
    from queues.model.names import Layout as Layout
    from queues.model.names import Token as Token
    from queues.model.names import check_id as check_id
    from queues.model.names import check_pool as check_pool
    from queues.model.names import due_of as due_of
    from queues.model.names import id_of as id_of
    from queues.model.names import is_token as is_token
    from queues.model.names import order_of as order_of
    from queues.model.names import seq_of as seq_of
    from queues.model.operations import PERM_ALL as PERM_ALL
    from queues.model.operations import PERM_READ as PERM_READ
    from queues.model.operations import Check as Check
    from queues.model.operations import Create as Create
    from queues.model.operations import Delete as Delete
    from queues.model.operations import Grant as Grant
    from queues.model.operations import Operation as Operation
    from queues.model.operations import Set as Set
    from queues.model.record import MAX_RECORD_BYTES as MAX_RECORD_BYTES
    from queues.model.record import NewItem as NewItem
    from queues.model.record import Record as Record
    from queues.private_directories import UnsafeDirectory as UnsafeDirectory
    from queues.private_directories import check_files as check_files
    from queues.private_directories import is_ours as is_ours
    from queues.private_directories import is_replaceable as is_replaceable
    from queues.private_directories import private_directory as private_directory
    from queues.producer.entrance import Entrance as Entrance
    from queues.queue_set import QueueSet as QueueSet
    from queues.session.access_walk import access_below as access_below
    from queues.session.contact import SessionState as SessionState
    from queues.session.contact import Wake as Wake
    from queues.session.contact import boottime as boottime
    from queues.session.rights import CREATOR_ALL as CREATOR_ALL
    from queues.session.rights import MAX_ASKED as MAX_ASKED
    from queues.session.rights import Rights as Rights
    from queues.session.rights import printable as printable
    from queues.session.session import Session as Session
    from queues.session.settings import Acl as Acl
    from queues.session.settings import Login as Login
    from queues.session.settings import SessionSettings as SessionSettings
    from queues.session.settings import Tls as Tls
    from queues.session.wire import NodeData as NodeData
    from queues.session.wire import Stat as Stat
    from queues.store.batch import commit_many as commit_many
    from queues.store.batch import commit_once as commit_once
    from queues.store.clock import EnsembleClock as EnsembleClock
    from queues.store.clock_jump import ClockJump as ClockJump
    from queues.store.commit import Transaction as Transaction
    from queues.store.commit import commit as commit
    from queues.store.commit import commit_until_deadline as commit_until_deadline
    from queues.store.members import ConsumerAnnouncement as ConsumerAnnouncement
    from queues.store.members import read_announcements as read_announcements
    from queues.store.pool_limits import LONGEST_ID_CHARACTERS as LONGEST_ID_CHARACTERS
    from queues.store.pool_limits import LS_LIMITS as LS_LIMITS
    from queues.store.pool_limits import USUAL_ID_CHARACTERS as USUAL_ID_CHARACTERS
    from queues.store.pool_limits import LimitsChangeOperations as LimitsChangeOperations
    from queues.store.pool_limits import PoolLimits as PoolLimits
    from queues.store.pool_limits import Pools as Pools
    from queues.store.pool_limits import fits_ls as fits_ls
    from queues.store.pool_limits import ls_limit as ls_limit
    from queues.store.pool_nodes import MAX_POOLS as MAX_POOLS
    from queues.store.watched_folder import WatchedFolder as WatchedFolder

_NAMES = {
    "admin.scrubber": (
        "Repair",
        "Scrubber",
        "ScrubReport",
        "Unrepaired",
    ),
    "claims.claim": (
        "Claim",
        "Transition",
    ),
    "claims.claim_attempt": ("Candidate",),
    "claims.claimer": ("Claimer",),
    "claims.transitions": ("run_transitions",),
    "consumer.consumer": ("Consumer",),
    "consumer.heartbeat": (
        "Heartbeat",
        "STUCK_SECONDS",
    ),
    "dispatch.dispatcher": (
        "Dispatcher",
        "InFlight",
        "Prepared",
    ),
    "dispatch.handler_pool": (
        "Action",
        "Done",
        "Handler",
        "HandlerPool",
        "Move",
        "Requeue",
        "Retries",
    ),
    "dispatch.handler_threads": ("HandlerThreads",),
    "dispatch.puller": ("Puller",),
    "embedded.config": (
        "ServerConfig",
        "STATE_FOLDER",
    ),
    "embedded.directory": (
        "EMBEDDED_USER",
        "is_server_starting",
        "local_settings",
        "login_of",
        "running_server",
    ),
    "embedded.ensemble": (
        "Ensemble",
        "ensemble_login",
        "own_id",
        "parse_members",
    ),
    "embedded.java": (
        "find_jars",
        "find_java",
    ),
    "embedded.packets": ("send_four_letter_word",),
    "embedded.ports": ("free_ports",),
    "embedded.server": ("EmbeddedZooKeeper",),
    "embedded.zkcli": ("run_zkcli",),
    "model.codec": (
        "decode",
        "encode",
        "new_nonce",
        "new_uuid",
        "timestamp",
    ),
    "model.errors": (
        "AccessDenied",
        "ClaimLost",
        "Conflict",
        "CorruptRecord",
        "DataDirectoryInUse",
        "Error",
        "IdTaken",
        "InvalidEnsemble",
        "InvalidLimit",
        "InvalidName",
        "InvalidPayload",
        "ItemHeld",
        "ItemNotFound",
        "NotClaimed",
        "OutcomeUnknown",
        "PoolInUse",
        "PortTaken",
        "PutsFailed",
        "QueueError",
        "QueueFull",
        "Refusal",
        "Refused",
        "ServerEnded",
        "ServerNotRunning",
        "ServerStartFailed",
        "SessionLost",
        "TooLarge",
        "TooManyPools",
        "UnknownQueue",
        "Unreachable",
    ),
    "model.events": (
        "Event",
        "EventKind",
    ),
    "model.names": (
        "check_id",
        "check_pool",
        "DEFAULT_POOL",
        "due_of",
        "id_of",
        "is_token",
        "Layout",
        "LOW_LANE_SUFFIX",
        "order_of",
        "seq_of",
        "Token",
    ),
    "model.operations": (
        "Check",
        "Create",
        "Delete",
        "Grant",
        "Operation",
        "PERM_ALL",
        "PERM_READ",
        "Set",
    ),
    "model.record": (
        "MAX_RECORD_BYTES",
        "NewItem",
        "Record",
    ),
    "private_directories": (
        "check_files",
        "is_ours",
        "is_replaceable",
        "private_directory",
        "UnsafeDirectory",
    ),
    "producer.entrance": ("Entrance",),
    "queue_set": ("QueueSet",),
    "session.access_walk": ("access_below",),
    "session.contact": (
        "boottime",
        "SessionState",
        "Wake",
    ),
    "session.rights": (
        "CREATOR_ALL",
        "MAX_ASKED",
        "printable",
        "Rights",
    ),
    "session.session": ("Session",),
    "session.settings": (
        "Acl",
        "Login",
        "SessionSettings",
        "Tls",
    ),
    "session.wire": (
        "NodeData",
        "Stat",
    ),
    "store.batch": (
        "commit_many",
        "commit_once",
    ),
    "store.clock": ("EnsembleClock",),
    "store.clock_jump": ("ClockJump",),
    "store.commit": (
        "commit",
        "commit_until_deadline",
        "Transaction",
    ),
    "store.members": (
        "ConsumerAnnouncement",
        "read_announcements",
    ),
    "store.pool_limits": (
        "fits_ls",
        "LimitsChangeOperations",
        "LONGEST_ID_CHARACTERS",
        "ls_limit",
        "LS_LIMITS",
        "PoolLimits",
        "Pools",
        "USUAL_ID_CHARACTERS",
    ),
    "store.pool_nodes": ("MAX_POOLS",),
    "store.watched_folder": ("WatchedFolder",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = tuple(sorted(_HOMES))


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(f"queues.{_HOMES[name]}"), name)
    globals()[name] = value  # later uses find it without this function
    return value
