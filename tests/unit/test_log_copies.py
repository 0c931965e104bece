"""Logs of drivers elsewhere are copied to this host while they run, and once more after their end."""

from types import SimpleNamespace
from typing import Any

from orchestrator.worker.polling import LogCopies


class Copies:
    """A runner that records the runs of its calls; it raises for those in `lost`."""

    def __init__(self, backend: str, lost: str = "") -> None:
        self.backend, self._lost = backend, lost
        self.asked: list[str] = []

    def logs(self, run: str) -> list[Any]:
        self.asked.append(run)
        if run == self._lost:
            raise OSError("the cluster does not answer")
        return []


def job(run: str, runner: Copies | None) -> Any:
    return SimpleNamespace(monitor=SimpleNamespace(run=run, runner=runner))


def test_running_jobs_of_clusters_are_copied_and_once_more_when_they_have_ended() -> None:
    cluster, here = Copies("kubernetes"), Copies("local")
    waiting = [job("a-1", cluster), job("b-1", cluster), job("c-1", here), job("d-1", None)]
    copies = LogCopies(lambda: waiting)
    assert copies.step() > 0
    assert cluster.asked == ["a-1", "b-1"]
    del waiting[0]
    copies.step()
    assert cluster.asked[2:] == ["a-1", "b-1"]
    copies.step()
    assert cluster.asked[4:] == ["b-1"]
    assert here.asked == []


def test_a_cluster_that_does_not_answer_holds_no_other_up() -> None:
    silent, other = Copies("yarn", lost="a-1"), Copies("kubernetes")
    copies = LogCopies(lambda: [job("a-1", silent), job("b-1", other)])
    copies.step()
    assert other.asked == ["b-1"]
