"""Findings of the doctor: kinds, severities and remedies."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """The severity of a finding; an error or a warning makes the doctor exit with 1."""

    ERROR = "error"  # something is broken or makes no progress
    WARNING = "warning"  # an operator should look at it
    NOTE = "note"


class FindingKind(StrEnum):
    """The kind of a finding; docs/doctor.md explains each."""

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
    CIRCULAR_SCHEDULES = "circular-schedules"
    UNREADABLE_LIMITS = "unreadable-limits"
    PAUSED_POOL = "paused-pool"
    FULL_POOL = "full-pool"
    LARGE_FOLDER = "large-folder"
    LARGE_BOUND = "large-bound"
    NO_WORKER = "no-worker"
    NO_LEADER = "no-leader"
    VERSIONS_DIFFER = "versions-differ"
    SPARKS_DIFFER = "sparks-differ"
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
    THIS_HOST = "this-host"
    JAVA_MISSING = "java-missing"
    SPARK_MISSING = "spark-missing"
    NO_PROC = "no-proc"
    NO_TIME_ZONES = "no-time-zones"
    LITTLE_MEMORY = "little-memory"
    LITTLE_DISK = "little-disk"
    FEW_OPEN_FILES = "few-open-files"
    NOEXEC_TMP = "noexec-tmp"
    UNSAFE_DIRECTORY = "unsafe-directory"
    UNWRITABLE_DIRECTORY = "unwritable-directory"
    NO_LOOPBACK = "no-loopback"
    PORT_TAKEN = "port-taken"
    UNRESOLVED_HOST = "unresolved-host"
    ZOOKEEPER_UNREACHABLE = "zookeeper-unreachable"

    @property
    def severity(self) -> Severity:
        """The usual severity of this kind."""
        if self in _ERRORS:
            return Severity.ERROR
        return Severity.NOTE if self in _NOTES else Severity.WARNING


_ERRORS = {
    FindingKind.TOKEN_WITHOUT_RECORD,
    FindingKind.RECORD_WITHOUT_TOKEN,
    FindingKind.SEVERAL_TOKENS,
    FindingKind.UNREADABLE_RECORD,
    FindingKind.UNKNOWN_PLACE,
    FindingKind.UNWATCHED_DRIVER,
    FindingKind.UNSERVED_POOL,
    FindingKind.UNREADABLE_SCHEDULE,
    FindingKind.UNREADABLE_LIMITS,
    FindingKind.NO_WORKER,
    FindingKind.JAVA_MISSING,
    FindingKind.SPARK_MISSING,
    FindingKind.NO_PROC,
    FindingKind.UNSAFE_DIRECTORY,
    FindingKind.UNWRITABLE_DIRECTORY,
    FindingKind.NO_LOOPBACK,
    FindingKind.ZOOKEEPER_UNREACHABLE,
}
_NOTES = {FindingKind.STALE_RECEIPT, FindingKind.OPEN_TREE, FindingKind.THIS_HOST}


class Finding(BaseModel):
    """One problem, or a note: `what` describes it, `remedy` says what an operator can do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: FindingKind
    severity: Severity
    path: str  # of the node; or of a file, or the name of a setting
    what: str
    remedy: str
    fixable: bool = False  # whether `--fix` repairs it
    fixed: bool = False  # whether it was

    @classmethod
    def of(cls, kind: FindingKind, path: str, what: str, remedy: str, *, fixable: bool = False) -> Self:
        """A finding with the usual severity of its kind."""
        return cls(kind=kind, severity=kind.severity, path=path, what=what, remedy=remedy, fixable=fixable)

    @property
    def is_left(self) -> bool:
        """Whether an operator has to act on it."""
        return self.severity is not Severity.NOTE and not self.fixed


_ORDER = list(Severity)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort the findings, the most severe first."""
    return sorted(findings, key=lambda f: (_ORDER.index(f.severity), f.kind, f.path))
