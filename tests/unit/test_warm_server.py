"""The moment at which a warm server opens for drivers."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_runner.driver import warm_server
from spark_runner.protocol.warm_files import Gateway, ServerFiles


@pytest.mark.parametrize("rehearsal", [True, False])
def test_a_server_opens_when_it_has_gone_through_its_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rehearsal: bool
) -> None:
    files = ServerFiles(tmp_path)
    files.prepare()
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"recycling": {"alone": 0.0, "late": 0.0}, "rehearsal": rehearsal, "sample": {}}), "ascii"
    )
    spark = SimpleNamespace(stop=lambda: None)
    rehearsed: list[tuple[object, bool]] = []
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "4711")
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", "secret")
    for name, replacement in {
        "SparkSession": SimpleNamespace(builder=SimpleNamespace(getOrCreate=lambda: spark)),
        "run_sample": lambda session, _sample: rehearsed.append((session, files.was_opened())),
        "remove_java_functions": lambda _spark: None,
        "Eviction": lambda _spark, _files: SimpleNamespace(look=lambda: (0, 0)),
        "end_with_parent": lambda: None,
        "keep_streams_apart": lambda: None,
        "LOOK_SECONDS": 0.01,
    }.items():
        monkeypatch.setattr(warm_server, name, replacement)
    assert warm_server.main([str(plan)]) == 0
    assert rehearsed == [(spark, False)] * rehearsal
    assert files.gateway() == Gateway(4711, "secret")
