"""The sample program that fills a class archive and that a warm server rehearses."""

import pytest

from spark_runner.driver.class_sample import run_sample
from spark_runner.sql.sample import compiled_sample
from tests.spark_support import LocalSpark


def test_the_sample_job_runs_below_its_directory(
    local_spark: LocalSpark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(local_spark.folder)  # where its JVM works
    run_sample(local_spark.session(), compiled_sample())
    written = {path.parent.name for path in local_spark.folder.glob("*/part-*")}
    assert {"items", "lines", "pages", "totals", "days"} <= written
    assert "kind" in capsys.readouterr().out
