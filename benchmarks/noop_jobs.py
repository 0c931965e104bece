"""What the benchmarks of jobs share: jobs whose drivers do nothing, and the server's counter of writes."""

from orchestrator.models.definition import build_definition
from orchestrator.models.job import JobState
from queues.documents import encode
from queues.embedded.four_letter import ask
from queues.new_item import NewItem
from queues.operations import Create


def noop_items(count: int) -> list[NewItem]:
    """So many jobs, as `job submit` would put them."""
    definition = build_definition({"name": "noop", "python": "pass", "file": "noop.py"}, "benchmark")
    document = encode(definition.model_dump(mode="json", exclude_defaults=True))
    payload = JobState.enqueued("noop").model_dump(mode="json", exclude_defaults=True)
    return [
        NewItem(payload, f"job-{number:05}", riders=lambda path: [Create(f"{path}/definition", document)])
        for number in range(count)
    ]


def last_zxid(hosts: str) -> int:
    """The last transaction of the server."""
    lines = ask(hosts, "srvr").splitlines()
    return int(next(line for line in lines if line.startswith("Zxid:")).split()[1], 16)
