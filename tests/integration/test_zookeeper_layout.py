"""Each node that a cluster makes is in docs/zookeeper-layout.md."""

import re
from collections.abc import Iterator
from pathlib import Path

from queues import Session
from tests.jobs_support import ScriptedDeployment

PAGE = (Path(__file__).parents[2] / "docs" / "zookeeper-layout.md").read_text("utf-8")
PATHS: list[str] = re.findall(r"^\| `/orchestrator([^`]+)`", PAGE, re.MULTILINE)


def is_in_page(path: str) -> bool:
    """Whether the page has a node or a folder of this form."""
    parts = path.split("/")
    return any(
        len(parts) <= len(shown) and all(map(fits, shown, parts))
        for shown in (each.replace("\\|", "|").split("/") for each in PATHS)
    )


def fits(shown: str, part: str) -> bool:
    return re.fullmatch(re.sub(r"<[^>]+>", "[^|]+", re.sub(r"([|.])", r"\\\1", shown)), part) is not None


def below(session: Session, path: str) -> Iterator[str]:
    for name in session.children(path) or ():
        yield f"{path}/{name}"
        yield from below(session, f"{path}/{name}")


def test_each_node_of_a_cluster_with_jobs_is_in_the_page(scripted_deployment: ScriptedDeployment) -> None:
    root = scripted_deployment.queues.layout.root
    scripted_deployment.worker()
    scripted_deployment.client.change_pool("default", cap=2)
    scripted_deployment.wait(scripted_deployment.submit("pass", concurrency=1))
    scripted_deployment.submit("pass", pool="other")
    found = [path.removeprefix(root) for path in below(scripted_deployment.session(), root)]
    assert len(found) > 20
    assert not [path for path in found if not is_in_page(path)]


def test_another_node_would_be_missing_in_the_page() -> None:
    assert is_in_page("/jobs/5b/t1/attempt-1-af61/alive")
    assert not is_in_page("/jobs/5b/t1/other")
    assert not is_in_page("/queues/accept/default/t1")
