from pathlib import Path

import pytest

from spark_runner.runners.class_archive import maker


@pytest.mark.parametrize(
    ("waited", "load", "expected"),
    [(0.0, 99.0, True), (50.0, 0.0, False), (None, 0.0, True), (None, 99.0, False)],
)
def test_a_host_is_idle_when_nothing_waits_for_its_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: float | None, load: float, *, expected: bool
) -> None:
    monkeypatch.setattr(maker, "LEAST_MEMORY", 0)
    monkeypatch.setattr(maker, "LEAST_DISK", 0)
    monkeypatch.setattr(maker, "waited_percent", lambda _resource: waited)
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    assert maker.host_is_idle(tmp_path) is expected


@pytest.mark.parametrize("limit", ["LEAST_MEMORY", "LEAST_DISK"])
def test_a_host_without_free_memory_or_disk_is_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(maker, "waited_percent", lambda _resource: 0.0)
    monkeypatch.setattr(maker, limit, 1 << 60)
    assert not maker.host_is_idle(tmp_path)
