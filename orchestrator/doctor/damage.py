"""Tokens and records that do not fit: what the scrubber finds."""

from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from queues.queue import QueueSet
from queues.scrubber import Repair, Scrubber, Unrepaired

# What the scrubber finds -> kind, what, remedy.
KINDS: dict[Repair | Unrepaired, tuple[Kind, str, str]] = {
    Repair.RESTORED: (
        Kind.RECORD_WITHOUT_TOKEN,
        "{id} has a record and stands in no queue: nobody will ever take it",
        "--fix makes the token that the record names",
    ),
    Repair.ENTERED: (
        Kind.RECORD_WITHOUT_TOKEN,
        "{id} has a record that cannot be read and stands in no queue",
        "--fix brings it to dead, its bytes unchanged; look at them with `orchestrator zkcli get`",
    ),
    Repair.MOVED_TO_DEAD: (
        Kind.TOKEN_WITHOUT_RECORD,
        "{id} stands in a queue and has no record",
        "--fix brings the token to dead, where `orchestrator queue show dead` tells; enqueue the job anew",
    ),
    Repair.DEDUPLICATED: (
        Kind.SEVERAL_TOKENS,
        "{id} stands in several queues; this token is not the one that counts",
        "--fix removes this token",
    ),
    Repair.RECEIPT: (
        Kind.STALE_RECEIPT,
        "a producer that was idle for a day has left its receipt",
        "--fix removes it, and so does the leader",
    ),
    Repair.STOP: (
        Kind.STALE_STOP,
        "somebody asked to stop {id}, which is gone",
        "--fix removes the request, and so does the leader",
    ),
    Unrepaired.MISMATCHED: (
        Kind.OTHER_TOKEN,
        "{id} stands in a queue under another token than its record names",
        "nothing is to be done when a worker takes it: its claim makes them agree",
    ),
    Unrepaired.UNREADABLE: (
        Kind.UNREADABLE_RECORD,
        "the record of {id} cannot be read",
        "the next worker that takes it brings it to dead; its bytes stay for `orchestrator zkcli get`",
    ),
    Unrepaired.UNKNOWN: (
        Kind.UNKNOWN_PLACE,
        "{id} is in a queue or pool that is not known here: made by a newer version, or by hand",
        "bring all programs to one version; else move it by hand with `orchestrator zkcli`",
    ),
    Unrepaired.FOREIGN: (
        Kind.FOREIGN_NODE,
        "this node is not ours, and stands in a folder of ours",
        "remove it with `orchestrator zkcli deleteall` if nobody needs it",
    ),
}


def look(survey: Survey) -> Iterator[Finding]:
    """What the scrubber would mend or leave, and payloads that are no job's."""
    queue_set = survey.queue_set
    for found in Scrubber(queue_set.root, queue_set.claimer).look():
        kind, what, remedy = KINDS[found.kind]
        yield Finding.of(
            kind, found.path, what.format(id=found.id), remedy, fixable=isinstance(found.kind, Repair)
        )
    for path, why in survey.unreadable.items():
        yield Finding.of(Kind.UNREADABLE_RECORD, path, why, "the next worker that takes it brings it to dead")


def mend(queue_set: QueueSet) -> None:
    """Put right what the scrubber can; each mend proves that the damage is still there."""
    Scrubber(queue_set.root, queue_set.claimer).scrub()
