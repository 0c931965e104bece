"""The stored end of pods that are gone."""

from typing import Any, cast

import pytest

from spark_runner.runners.kubernetes.api import KubernetesApi
from spark_runner.runners.kubernetes.pod import Pod
from spark_runner.runners.kubernetes.pods import PodWatch
from tests.unit.test_kubernetes_pod import RUN, pod


class OnePod:
    """A cluster with one driver."""

    def pods(self, _namespace: str, _selector: str) -> tuple[list[dict[str, Any]], str]:
        return [pod()], "1"


class NoPods:
    """A cluster that lists none."""

    def pods(self, _namespace: str, _selector: str) -> tuple[list[dict[str, Any]], str]:
        return [], "2"


@pytest.mark.parametrize("when", ["never", "before its end is reported", "after that"])
def test_the_end_of_a_pod_is_kept_until_its_run_is_removed_whenever_the_end_is_reported(when: str) -> None:
    watch = PodWatch(cast("KubernetesApi", OnePod()), "any")
    watch._start_again()  # noqa: SLF001 - what its thread does, in an order that no thread can upset
    (known,) = watch.list(RUN)
    if when == "before its end is reported":
        watch.forget(RUN, [known])
    watch._take({"type": "DELETED", "object": deleted()})  # noqa: SLF001 - likewise
    if when == "after that":
        watch.forget(RUN, [])
    assert watch.gone(RUN) == ([Pod.of(deleted()).gone()] if when == "never" else [])


def deleted() -> dict[str, Any]:
    """A pod as the API shows it last."""
    document = pod()
    return {**document, "metadata": {**document["metadata"], "deletionTimestamp": "2026-01-01T00:00:01Z"}}


def test_a_pod_that_left_the_list_without_being_deleted_is_not_taken_for_gone() -> None:
    watch = PodWatch(cast("KubernetesApi", OnePod()), "any")
    watch._start_again()  # noqa: SLF001 - as above
    watch._take({"type": "DELETED", "object": pod()})  # noqa: SLF001 - it lost its label
    assert watch.gone(RUN) == []
    watch._start_again()  # noqa: SLF001 - as above
    watch._api = cast("KubernetesApi", NoPods())  # noqa: SLF001 - while there was no watch
    watch._start_again()  # noqa: SLF001 - as above
    assert watch.gone(RUN) == []
