import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from spark_runner.runners.launch import installed_spark_home
from tests.servers.yarn import Yarn
from tests.servers.yarn_daemons import fetch_text
from tests.waiting import wait_until
from tests.yarn_support import spark_environment, spark_settings

END_S = 120

JOB = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(spark.range(10).count())
sys.exit(int(sys.argv[1]))
"""


def only_application(yarn: Yarn, tag: str) -> dict[str, Any]:
    answer = json.loads(fetch_text(f"{yarn.url}/ws/v1/cluster/apps?applicationTags={tag}"))
    (application,) = answer["apps"]["app"]
    return dict(application)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("code", "said"),
    [(0, ("SUCCEEDED", "")), (3, ("FAILED", "User application exited with status 3"))],
)
def test_a_python_program_in_cluster_mode_ends_as_it_says(
    yarn: Yarn, tmp_path: Path, process_mark: str, code: int, said: tuple[str, str]
) -> None:
    assert process_mark
    job = tmp_path / "job.py"
    job.write_text(JOB, "utf-8")
    tag = f"job-{uuid.uuid4().hex}"
    settings = {**spark_settings(yarn.staging), "spark.yarn.tags": tag, "spark.yarn.maxAppAttempts": "1"}
    home = installed_spark_home()
    assert home is not None
    command = [str(home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    ended = subprocess.run(
        [*command, str(job), str(code)],
        env={**os.environ, **spark_environment(yarn.conf_dir)},
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )
    assert ended.returncode == (1 if code else 0), ended.stderr[-3000:]
    ended_app = wait_until(
        lambda: found if (found := only_application(yarn, tag))["state"] == "FINISHED" else None,
        20,
        "the application has ended",
    )
    assert (ended_app["finalStatus"], ended_app["diagnostics"]) == said
