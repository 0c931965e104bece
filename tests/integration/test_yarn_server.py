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


def ended_application(yarn: Yarn, tag: str) -> tuple[str, str]:
    """What it says of its end, and why."""
    wait_until(lambda: only_application(yarn, tag)["state"] == "FINISHED", 20, "it has ended")
    ended = only_application(yarn, tag)
    return ended["finalStatus"], ended["diagnostics"]


@pytest.mark.spark
def test_python_programs_in_cluster_mode_end_as_they_say(
    yarn: Yarn, tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    home, job = installed_spark_home(), tmp_path / "job.py"
    assert home is not None
    job.write_text(JOB, "utf-8")
    tags = {0: f"job-{uuid.uuid4().hex}", 3: f"job-{uuid.uuid4().hex}"}
    started = []
    for code, tag in tags.items():
        command = [str(home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster"]
        settings = {**spark_settings(yarn.staging), "spark.yarn.tags": tag, "spark.yarn.maxAppAttempts": "1"}
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        environment = {**os.environ, **spark_environment(yarn.conf_dir)}
        started.append(subprocess.Popen([*command, str(job), str(code)], env=environment))
    assert [submit.wait(END_S) for submit in started] == [0, 1]
    said = {code: ended_application(yarn, tag) for code, tag in tags.items()}
    assert said == {0: ("SUCCEEDED", ""), 3: ("FAILED", "User application exited with status 3")}
