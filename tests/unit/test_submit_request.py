"""The request that a runner receives: missing files are found before anything starts."""

import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.references import ReferenceSettings
from orchestrator.config.tables import PoolPolicy
from orchestrator.handlers.submit_request import is_short, submit_request
from orchestrator.model.definition import build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import Plan, compile_program
from orchestrator.policy.policy import Policy
from queues.session import SessionSettings
from spark_runner.protocol.attempt import Attempt
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.installation import SparkInstallation

MAIN: dict[str, Any] = {"class": "Main"}
RUN_KEY = "0f0e0d0c-0b0a-0908-0706-050403020100"


def request(directory: Path, spark: dict[str, Any], **fields: Any) -> SubmitRequest:
    return request_with_jars({}, directory, spark, **fields)


def request_with_jars(
    jars: dict[str, tuple[str, ...]],
    directory: Path,
    spark: dict[str, Any],
    *,
    references: ReferenceSettings | None = None,
    policy: Policy | None = None,
    plan: Plan | None = None,
    quarantine: str = "",
    functions: dict[str, str] | None = None,
    installation: SparkInstallation | None = None,
    **fields: Any,
) -> SubmitRequest:
    document = {"name": "job", "directory": str(directory), "spark": spark, **fields}
    if not {"jar", "script"} & fields.keys():
        document["python"] = "pass"
    definition = build_definition(document, "test")
    attempt = Attempt(f"/attempt-2-{RUN_KEY}", 0, {"run_key": RUN_KEY, "attempt": 2, "state": "intent"})
    return submit_request(
        definition,
        compile_program(definition) if plan is None else plan,
        definition.spark,
        attempt,
        job_id="nightly",
        created="2026-01-31T23:30:00.123Z",
        pool="team",
        incarnation="i",
        stop_path="/stop",
        zookeeper=SessionSettings("zk:2181"),
        is_short=False,
        is_warm=True,
        policy=policy or Policy(),
        connector_jars=jars,
        quarantine=quarantine,
        installation=installation,
        functions=functions,
        references=references,
    )


@pytest.mark.parametrize(
    ("spark", "words"),
    [
        ({"jars": ["lib/missing.jar"]}, "there is no jar {}/lib/missing.jar"),
        ({"py_files": ["missing.py"]}, "there is no Python file {}/missing.py"),
        ({"files": ["data.csv#alias"]}, "there is no file {}/data.csv"),
    ],
)
def test_a_file_that_is_not_there_is_named_with_the_host(
    tmp_path: Path, spark: dict[str, Any], words: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        request(tmp_path, spark)
    assert (
        str(caught.value)
        == f"{words.format(tmp_path)} on {os.uname().nodename}, the host that submits the job"
    )


def test_the_jar_of_a_program_is_looked_for_and_travels_with_the_others(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"there is no jar .*/program\.jar"):
        request(tmp_path, {}, jar="program.jar", **MAIN)
    (tmp_path / "program.jar").touch()
    (tmp_path / "lib.jar").touch()
    made = request(tmp_path, {"jars": ["lib.jar"]}, jar="program.jar", **MAIN, arguments=["a", 1])
    assert made.conf["spark.jars"] == f"{tmp_path}/lib.jar,{tmp_path}/program.jar"
    assert made.plan["jar"] == {"class": "Main", "arguments": ["a", "1"]}
    assert (made.run, made.plan["run"]) == (f"{RUN_KEY}-2", f"{RUN_KEY}-2")


def test_files_elsewhere_and_patterns_are_left_to_spark(tmp_path: Path) -> None:
    jars = ["s3a://bucket/a.jar", "local:/opt/b.jar", "https://example.org/c.jar", "lib/*.jar"]
    made = request(tmp_path, {"jars": jars, "packages": ["org.example:thing:1.0"]})
    assert made.conf["spark.jars"] == ",".join([*jars[:3], f"{tmp_path}/lib/*.jar"])
    assert made.conf["spark.jars.packages"] == "org.example:thing:1.0"


def test_scripts_alone_may_share_a_jvm(tmp_path: Path) -> None:
    assert request(
        tmp_path, {}, script="CREATE TABLE shown USING print; INSERT INTO shown SELECT 1 AS n;"
    ).is_warm
    assert not request(tmp_path, {}).is_warm
    # A shared JVM has no folder of one job.
    beside = "CREATE TABLE shown USING print; INSERT INTO shown SELECT * FROM csv.`orders.csv`;"
    assert not request(tmp_path, {}, script=beside).is_warm


@pytest.mark.parametrize(
    ("labels", "time"),
    [
        ({}, "2026-01-31T23:30:00Z"),
        ({"fire_time": "2026-01-30T04:00:00Z"}, "2026-01-30T04:00:00Z"),
        ({"fire_time": "soon"}, "2026-01-31T23:30:00Z"),
    ],
)
def test_built_in_variables_have_the_values_of_the_run(
    tmp_path: Path, labels: dict[str, str], time: str
) -> None:
    script = "CREATE TABLE shown USING print; INSERT INTO shown SELECT '${ds}' AS day;"
    assert request(tmp_path, {}, script=script, labels=labels).plan["sql"]["built_ins"] == {
        "ds": time[:10],
        "ts": time,
        "fire_time": time,
        "run_id": "nightly",
        "attempt": "2",
    }


def test_the_plan_says_what_its_logs_are_named_by(tmp_path: Path) -> None:
    found = request(tmp_path, {"master": "local[1]"}).plan["job"]
    assert found == {"id": "nightly", "name": "job", "attempt": 2, "pool": "team", "deploy_mode": "client"}


def test_values_that_no_log_may_show_are_listed_beside_the_plan(tmp_path: Path) -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "of-the-conf", "spark.app.id": "plain"}
    script = "CREATE TABLE shown USING print; INSERT INTO shown SELECT 1 AS n;"
    variables = {"db_password": "of-a-variable", "day": "plain"}
    made = request(tmp_path, {"conf": conf}, script=script, variables=variables)
    assert set(made.secrets) == {"of-the-conf", "of-a-variable"}


def runs(*durations: Any) -> list[dict[str, Any]]:
    return [{"seconds": seconds, "state": "succeeded"} for seconds in durations]


@pytest.mark.parametrize("durations", [(8, 9.5, 12), (60, 60, 60), (5,) * 50, (900, *(5,) * 10)])
def test_a_job_whose_last_runs_were_all_short_is_short(durations: tuple[float, ...]) -> None:
    assert is_short(runs(*durations))


@pytest.mark.parametrize(
    "durations", [(), (5,), (5, 5), (5, 5, 61), (61, 5, 5, 5), (None, 5, 5), ("5", 5, 5)]
)
def test_a_job_with_a_long_run_or_too_few_runs_is_not_short(durations: tuple[Any, ...]) -> None:
    assert not is_short(runs(*durations))


def test_runs_without_a_duration_count_for_nothing() -> None:
    assert is_short([{}, *runs(5, 5, 5, None)])
    assert not is_short([{}, {}, {}])
    failed = {"seconds": 5, "state": "failed"}
    assert not is_short([failed] * 5)
    assert is_short([*runs(5, 5, 5), {"seconds": 900, "state": "failed"}])


REFERRING = """\
CREATE TABLE t (a INT) USING csv OPTIONS (path '/x', null_value '${secret:crm/key}${env:CRM_USER}');
SELECT * FROM t;
"""
SCOPES = ReferenceSettings.model_validate(
    {
        "environment": ["CRM_*"],
        "secrets": {"crm": {"kubernetes": "crm-login"}, "other": {"folder": "/etc/other"}},
    }
)


def test_a_plan_with_references_has_their_sources_and_its_pod_mounts_their_secrets(tmp_path: Path) -> None:
    on_kubernetes = {"master": "k8s://https://host:6443"}
    pod = request(tmp_path, on_kubernetes, references=SCOPES, script=REFERRING)
    assert pod.plan["references"] == {
        "environment": ["CRM_*"],
        "secrets": {"crm": {"folder": "/etc/orchestrator/secrets/crm"}},
    }
    mount = "spark.kubernetes.driver.secrets.crm-login"
    assert pod.conf[mount] == "/etc/orchestrator/secrets/crm"
    local = request(tmp_path, {"master": "local[1]"}, references=SCOPES, script=REFERRING)
    assert mount not in local.conf
    assert not local.is_warm
    plain = request(tmp_path, on_kubernetes, references=SCOPES, script="SELECT 1")
    assert "references" not in plain.plan
    assert mount not in plain.conf


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (PoolPolicy(secrets=("erp/*",)), "the secret 'crm/key' is refused"),
        (PoolPolicy(environment=("DATA_*",)), "the environment variable 'CRM_USER' is refused"),
    ],
)
def test_the_policy_of_a_pool_limits_references(tmp_path: Path, rules: PoolPolicy, words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        request(tmp_path, {}, policy=Policy({"team": rules}), script=REFERRING)
    assert words in str(caught.value)


def test_each_attempt_has_its_own_folder_for_rows_that_do_not_fit(tmp_path: Path) -> None:
    script = "SELECT 1"
    made = request_with_jars({}, tmp_path, {}, quarantine="s3a://bad/rows/", script=script)
    assert made.plan["sql"]["quarantine"] == f"s3a://bad/rows/nightly/{RUN_KEY}-2"
    assert request(tmp_path, {}, script=script).plan["sql"]["quarantine"] == ""
