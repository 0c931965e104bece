"""What the doctor finds, as a value."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """How bad it is; all but a note makes `cluster doctor` end with 1."""

    ERROR = "error"  # something is broken, or stands still
    WARNING = "warning"  # somebody should look
    NOTE = "note"


class Kind(StrEnum):
    """What is wrong; docs/doctor.md explains each."""

    TOKEN_WITHOUT_RECORD = "token-without-record"  # noqa: S105 - no password
    RECORD_WITHOUT_TOKEN = "record-without-token"  # noqa: S105 - likewise
    SEVERAL_TOKENS = "several-tokens"
    OTHER_TOKEN = "other-token"  # noqa: S105 - likewise
    UNREADABLE_RECORD = "unreadable-record"
    UNKNOWN_PLACE = "unknown-place"
    FOREIGN_NODE = "foreign-node"
    STALE_RECEIPT = "stale-receipt"
    LARGE_RECORD = "large-record"
    ORPHAN_LOCK = "orphan-lock"
    STALE_STOP = "stale-stop"
    STALE_SLOT = "stale-slot"
    JOB_IN_DEAD = "job-in-dead"
    STUCK_DRIVER = "stuck-driver"
    UNWATCHED_DRIVER = "unwatched-driver"
    WARNED_JOB = "warned-job"
    CLAIMED_AGAIN_AND_AGAIN = "claimed-again-and-again"
    OVERDUE = "overdue"
    UNSERVED_POOL = "unserved-pool"
    OVERDUE_SCHEDULE = "overdue-schedule"
    UNREADABLE_SCHEDULE = "unreadable-schedule"
    UNREADABLE_LIMITS = "unreadable-limits"
    PAUSED_POOL = "paused-pool"
    FULL_POOL = "full-pool"
    LARGE_FOLDER = "large-folder"
    LARGE_BOUND = "large-bound"
    NO_WORKER = "no-worker"
    NO_LEADER = "no-leader"
    VERSIONS_DIFFER = "versions-differ"
    LOGS_NOT_SHIPPED = "logs-not-shipped"
    TWIN_WORKERS = "twin-workers"
    MANY_EPHEMERALS = "many-ephemerals"
    CLOCK_SKEW = "clock-skew"
    ZOOKEEPER_LATENCY = "zookeeper-latency"
    UNREACHABLE_SERVER = "unreachable-server"
    OPEN_NODES = "open-nodes"
    FOREIGN_RIGHTS = "foreign-rights"
    SHARED_RIGHTS = "shared-rights"
    READABLE_SECRET = "readable-secret"  # noqa: S105 - no password
    UNENCRYPTED_LOGIN = "unencrypted-login"
    OPEN_TREE = "open-tree"

    @property
    def severity(self) -> Severity:
        """How bad it is, where nothing else is said."""
        if self in _ERRORS:
            return Severity.ERROR
        return Severity.NOTE if self in {Kind.STALE_RECEIPT, Kind.OPEN_TREE} else Severity.WARNING


_ERRORS = {
    Kind.TOKEN_WITHOUT_RECORD,
    Kind.RECORD_WITHOUT_TOKEN,
    Kind.SEVERAL_TOKENS,
    Kind.UNREADABLE_RECORD,
    Kind.UNKNOWN_PLACE,
    Kind.UNWATCHED_DRIVER,
    Kind.UNSERVED_POOL,
    Kind.UNREADABLE_SCHEDULE,
    Kind.UNREADABLE_LIMITS,
    Kind.NO_WORKER,
}


class Finding(BaseModel):
    """One thing that is wrong, or a note: `what` explains, `remedy` says what to do by hand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    severity: Severity
    path: str  # of the node that tells; of a file, or a setting, where it is about those
    what: str
    remedy: str
    fixable: bool = False  # whether `--fix` mends it
    fixed: bool = False  # whether it has

    @classmethod
    def of(cls, kind: Kind, path: str, what: str, remedy: str, *, fixable: bool = False) -> Self:
        """A finding that is as bad as its kind."""
        return cls(kind=kind, severity=kind.severity, path=path, what=what, remedy=remedy, fixable=fixable)

    @property
    def is_left(self) -> bool:
        """Whether somebody has to do something about it."""
        return self.severity is not Severity.NOTE and not self.fixed


_ORDER = list(Severity)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first."""
    return sorted(findings, key=lambda f: (_ORDER.index(f.severity), f.kind, f.path))
