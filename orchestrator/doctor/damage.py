"""Checks of tokens and records against each other, by the scrubber."""

from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.snapshot import ClusterSnapshot
from queues import QueueSet, Repair, Scrubber, Unrepaired

# Result of the scrubber -> kind, description, remedy.
KINDS: dict[Repair | Unrepaired, tuple[FindingKind, str, str]] = {
    Repair.RESTORED: (
        FindingKind.RECORD_WITHOUT_TOKEN,
        "{id} has a record and is in no queue: no worker will ever claim it",
        "--fix creates the token that the record names",
    ),
    Repair.ENTERED: (
        FindingKind.RECORD_WITHOUT_TOKEN,
        "{id} has a record that cannot be read, and is in no queue",
        "--fix moves it to dead with its bytes unchanged; read them with `orchestrator zkcli get`",
    ),
    Repair.MOVED_TO_DEAD: (
        FindingKind.TOKEN_WITHOUT_RECORD,
        "{id} is in a queue and has no record",
        "--fix moves the token to dead, see `orchestrator queue show dead`; enqueue the job anew",
    ),
    Repair.DEDUPLICATED: (
        FindingKind.SEVERAL_TOKENS,
        "{id} is in several queues; its record names another token than this one",
        "--fix removes this token",
    ),
    Repair.RECEIPT: (
        FindingKind.STALE_RECEIPT,
        "the receipt of a producer that was idle for a day",
        "--fix removes it; otherwise the leader does",
    ),
    Repair.STOP: (
        FindingKind.STALE_STOP,
        "a request to stop {id}, which is gone",
        "--fix removes the request; otherwise the leader does",
    ),
    Unrepaired.MISMATCHED: (
        FindingKind.OTHER_TOKEN,
        "{id} is in a queue under another token than its record names",
        "none while workers run: the next claim repairs it",
    ),
    Unrepaired.UNREADABLE: (
        FindingKind.UNREADABLE_RECORD,
        "the record of {id} cannot be read",
        "the next worker that claims it moves it to dead; read its bytes with `orchestrator zkcli get`",
    ),
    Unrepaired.UNKNOWN: (
        FindingKind.UNKNOWN_PLACE,
        "{id} is in a queue or pool that this version does not have: created by a newer version or manually",
        "update all programs to one version; or move it manually with `orchestrator zkcli`",
    ),
    Unrepaired.FOREIGN: (
        FindingKind.FOREIGN_NODE,
        "a foreign node in a folder of the orchestrator",
        "delete it with `orchestrator zkcli deleteall` if it is not needed",
    ),
}


def check_queues(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Damage that the scrubber finds, and payloads that are no job's."""
    queue_set = snapshot.queue_set
    for found in Scrubber(queue_set.root, queue_set.claimer).look():
        kind, what, remedy = KINDS[found.kind]
        yield Finding.of(
            kind, found.path, what.format(id=found.id), remedy, fixable=isinstance(found.kind, Repair)
        )
    for path, why in snapshot.unreadable.items():
        remedy = "the next worker that claims it moves it to dead"
        yield Finding.of(FindingKind.UNREADABLE_RECORD, path, why, remedy)


def fix(queue_set: QueueSet) -> None:
    """Repair all that the scrubber can; each repair checks in its multi that the damage is still there."""
    Scrubber(queue_set.root, queue_set.claimer).scrub()
