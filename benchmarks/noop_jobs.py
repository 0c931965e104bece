"""Support for benchmarks of jobs: jobs whose drivers do nothing, and the server's counter of writes."""

from orchestrator.model.definition import build_definition
from orchestrator.model.job import JobState
from queues import Create, NewItem, encode, send_four_letter_word


def noop_items(count: int) -> list[NewItem]:
    """This many jobs, as put by `job submit`."""
    definition = build_definition({"name": "noop", "python": "pass", "file": "noop.py"}, "benchmark")
    document = encode(definition.model_dump(mode="json", exclude_defaults=True))
    payload = JobState.enqueued("noop").to_payload()
    return [
        NewItem(
            payload,
            f"job-{number:05}",
            extra_operations=lambda path: [Create(f"{path}/definition", document)],
        )
        for number in range(count)
    ]


def last_zxid(hosts: str) -> int:
    """The last transaction of the server."""
    lines = send_four_letter_word(hosts, "srvr").splitlines()
    return int(next(line for line in lines if line.startswith("Zxid:")).split()[1], 16)
