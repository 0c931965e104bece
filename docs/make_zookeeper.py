"""Makes the table of docs/zookeeper-layout.md from the functions that build the paths of nodes."""

import inspect
import re
from collections.abc import Callable, Iterator

from docs.generated import Part, code, prose, table
from orchestrator.config.settings import Settings
from orchestrator.model.paths import Nodes
from orchestrator.model.plan import plan_path
from queues import Layout, Token
from spark_runner.protocol.adjustment_node import adjustment_path
from spark_runner.protocol.attempt import Attempt, attempt_path
from spark_runner.protocol.positions_node import positions_path

_ROOT = Settings.model_fields["root"].default
_NAMES = {"item_id": "id"}  # as the pages call it
_BUCKET = re.compile(r"/[0-9a-f]{2}/<id>")


def made() -> str:
    """One row per node, in the order of a listing."""
    nodes = sorted({**dict(_of(Layout(_ROOT))), **dict(_of(Nodes(_ROOT))), **dict(_below_a_job())}.items())
    return table(("node", "content"), ((code(path), prose(words)) for path, words in nodes))


def _of(paths: Layout | Nodes) -> Iterator[tuple[str, str]]:
    for name, member in inspect.getmembers(type(paths)):
        if isinstance(member, property):
            yield getattr(paths, name), member.__doc__ or ""
        elif inspect.isfunction(member) and not name.startswith("_"):
            arguments = [_placeholder(each) for each in list(inspect.signature(member).parameters)[1:]]
            path = str(member(paths, *arguments))
            yield _BUCKET.sub("/<xx>/<id>", path), member.__doc__ or ""


def _placeholder(name: str) -> object:
    if name != "token":
        return f"<{_NAMES.get(name, name)}>"
    token = Token(0, 0, "<id>")
    object.__setattr__(token, "name", "queue-|<id>|<due>|<seq>")
    return token


def _below_a_job() -> Iterator[tuple[str, str]]:
    job = f"{_ROOT}/jobs/<xx>/<id>"
    attempt = attempt_path(job, "<run key>", 1).replace("-1-", "-<n>-")
    yield f"{job}/definition", "The definition of the job as it was submitted; it never changes."
    made: tuple[tuple[str, Callable[..., object]], ...] = (
        (plan_path(job), plan_path),
        (attempt, attempt_path),
        (adjustment_path(attempt), adjustment_path),
        (positions_path(attempt), positions_path),
    )
    for path, function in made:
        yield path, function.__doc__ or ""
    alive = Attempt.alive
    assert isinstance(alive, property)  # noqa: S101 - mypy sees the value of a property, not the property
    yield f"{attempt}/alive", alive.__doc__ or ""


PART = Part(__file__, "zookeeper-layout.md", "the functions that build paths", made)

if __name__ == "__main__":
    PART.write()
