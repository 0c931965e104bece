"""Support for tests of tuning: programs that report what they needed, and what their drivers were given."""

from typing import Any

from orchestrator.history.history import History
from orchestrator.history.key import Key
from orchestrator.model.definition import Definition
from orchestrator.model.paths import Nodes
from orchestrator.tuning.record import StoredDecision, TuningRecord
from queues.model.operations import Create, Set
from queues.session import Session
from queues.store.commit import commit
from tests.jobs_support import Deployment, python_job
from tests.scripted.store import Store

MIB = 1 << 20
NAME = "flights"
SPARK = {"master": "local[2]", "driver": {"memory": "4g"}}
CHOICE = {
    "driver.memory": {"before": "4096m", "after": "2048m", "asked": "4096m", "rule": "shrink", "why": "so"}
}
HEAP, OVERHEAD = "spark.driver.memory", "spark.driver.memoryOverhead"


def measures(heap: int = 400) -> str:
    """A program that reports this peak of its heap, in MiB."""
    driver = {"heap_peak_bytes": heap * MIB, "rss_peak_bytes": (heap + 200) * MIB}
    return f"measure(seconds=60.0, gc_share=0.01, spill_disk_bytes=0, driver={driver})\n"


def runs_out(short_of: object = "driver.heap", *, attempts: int = 1) -> str:
    """A program whose first attempts are out of memory."""
    return f"if attempt <= {attempts}: run_out({short_of!r})\n" + measures()


def tuned_job(program: str, mode: str = "apply", **fields: Any) -> Definition:
    """A job of the name with a driver of 4 GiB and retries without delay."""
    retry = {"attempts": 4, "delay": "0s"}
    return python_job(
        program, **{"name": NAME, "spark": SPARK, "retry": retry, "tuning": {"mode": mode}, **fields}
    )


def run_to_end(deployment: Deployment, job: Definition) -> str:
    """Run a job; returns its id."""
    job_id = deployment.client.submit(job).id
    deployment.wait(job_id)
    return job_id


def submitted(deployment: Deployment, job_id: str, number: int = 1) -> dict[str, str]:
    """The Spark properties that the last submission of an attempt got from its worker."""
    run = f"{deployment.queues.get(job_id).run_key}-{number}"
    request = Store(deployment.settings.state_dir).of_run(run)[-1].request()
    assert request is not None
    conf: dict[str, str] = request["conf"]
    return conf


def heap_of(deployment: Deployment, job_id: str, number: int = 1) -> int:
    """The heap of the driver of an attempt, in MiB."""
    return _mib(submitted(deployment, job_id, number)[HEAP])


def _mib(text: str) -> int:
    return int(text[:-1]) * (1024 if text.endswith("g") else 1)


def tuning_of(deployment: Deployment, name: str = NAME) -> TuningRecord:
    return deployment.client.tunings.read(name)


def tuning_path(deployment: Deployment, name: str = NAME) -> str:
    return f"{deployment.settings.root}/tuning/{name}"


def version_of(session: Session, path: str) -> int | None:
    """The version of a node, None without it."""
    found = session.exists(path)
    return None if found is None else found.version


def entry(job: Definition, number: int = 1, *, heap: int = 400, **facts: Any) -> dict[str, Any]:
    """The entry of a run of this job that succeeded with what it asked for."""
    key = Key.of(job)
    driver = {"heap_peak_bytes": heap * MIB, "rss_peak_bytes": (heap + 200) * MIB}
    properties = job.spark.properties
    return {
        "run": f"earlier-{number}",
        "job": "earlier",
        "attempt": 1,
        "state": "succeeded",
        "ended": f"2026-01-01T00:{number:02}:00.000Z",
        "settings": {**properties, "spark.master": job.spark.target.master},
        "asked": {name: text for name, text in properties.items() if name.startswith("spark.driver.")},
        "code": key.code,
        "parameters": key.parameters,
        "metrics": {"seconds": 60.0, "gc_share": 0.01, "spill_disk_bytes": 0, "driver": driver},
        **facts,
    }


def with_past_run(deployment: Deployment, job: Definition, number: int = 1, **facts: Any) -> None:
    """Record a run of this job that needed a tenth of its heap."""
    history = History(deployment.session(), Nodes(deployment.settings.root))
    history.record(job.name, entry(job, number, **facts))


def plant(session: Session, path: str, data: bytes) -> None:
    """Write a node as another program does."""
    session.ensure_path(path.rpartition("/")[0])
    commit(session, [Set(path, data, -1) if session.exists(path) else Create(path, data)])


def decision(number: int = 1, **facts: object) -> StoredDecision:
    """The decision about a run."""
    said = {"at": "2026-01-01T00:00:00Z", "run": f"key-{number}", "code": "c", "parameters": "-", "runs": 1}
    return StoredDecision.model_validate({**said, "choices": CHOICE, **facts})
