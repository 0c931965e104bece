"""The operator's lists: each rule, each way around it, and the rule that an error names."""

from typing import Any

import pytest

from orchestrator.config.spark_defaults import pool_spark
from orchestrator.config.tables import PoolPolicy
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.plan import compile_program
from orchestrator.policy.policy import Policy
from orchestrator.policy.rules import Listed, PolicyRefused, matches_any

K8S = "k8s://https://one:6443"


def definition(spark: dict[str, Any] | None = None, **fields: Any) -> Definition:
    document = {"name": "job", "spark": spark or {}, **fields}
    if not {"jar", "script", "python"} & fields.keys():
        document["python"] = "pass"
    return build_definition(document, "test")


def policy(**lists: list[str]) -> Policy:
    return Policy({"*": PoolPolicy.model_validate(lists)})


def refused(made: Policy, job: Definition, **more: Any) -> str:
    with pytest.raises(PolicyRefused) as raised:
        made.check("team", job, **more)
    return str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("local[*]", "local[4]", True),
        ("local[*]", "local[*]", True),
        ("local[*]", "local", False),
        ("*", "anything/at/all", True),
        ("spark://*:7077", "spark://one.example.org:7077", True),
        ("spark://*:7077", "spark://evil/x:7077", False),
        ("https://*.example.org/*", "https://repo.example.org/maven/x.jar", True),
        ("https://*.example.org/*", "https://evil/.example.org/x.jar", False),
        ("https://repo/*", "https://repo/@evil/x.jar", False),
        ("https://repo/good/*", "https://repo/good/../bad/x.jar", False),
        ("https://repo/good/*", "https://repo/good/%2e%2e/bad/x.jar", False),
        ("org.apache.*:*", "org.apache.spark:spark-avro_2.13:4.0.0", True),
        ("a*b*c", "axbxbyc", True),
        ("a*b*c", "ac", False),
        ("ab*ba", "aba", False),
        ("", "x", False),
    ],
)
def test_a_star_matches_characters_of_one_part(pattern: str, text: str, fits: bool) -> None:
    assert matches_any([pattern], text) is fits


def test_without_lists_all_is_open_as_before() -> None:
    spark = {
        "master": "spark://any:7077",
        "packages": ["a:b:1"],
        "conf": {"spark.jars.repositories": "http://x"},
    }
    Policy().check("team", definition(spark, callback={"url": "http://127.0.0.1:1/x"}))


REFUSALS: list[tuple[dict[str, list[str]], dict[str, Any], str]] = [
    ({"masters": ["local[*]"]}, {"master": "spark://evil:7077"}, "the master 'spark://evil:7077'"),
    (
        {"masters": ["spark://one:*"]},
        {"master": "spark://one:7077,evil:7077"},
        "the master 'spark://evil:7077'",
    ),
    ({"masters": ["yarn"]}, {}, "the master 'local[*]'"),
    (
        {"masters": ["spark://one:*"]},
        {"master": "spark://one:7077", "standalone": {"ui": "169.254.169.254:80"}},
        "'169.254.169.254:80' in `spark.standalone.ui`",
    ),
    (
        {"masters": ["spark://one:*"]},
        {"master": "spark://one:7077", "standalone": {"rest": "http://evil:6066"}},
        "in `spark.standalone.rest`",
    ),
    *(
        (  # for some clients the host is `one`, for others `evil`
            {"masters": ["spark://one:*"]},
            {"master": "spark://one:7077", "standalone": {"rest": rest}},
            "in `spark.standalone.rest`",
        )
        for rest in (
            "http://evil\\@one:6066",
            "http://evil@one:6066",
            "http://one:6066?@evil",
            "file://one/x",
        )
    ),
    (
        {"masters": ["yarn"]},
        {"master": "yarn", "yarn": {"resource_manager": "http://yarn:8088"}},
        "in `spark.yarn.resource_manager`",
    ),
    (
        {"masters": ["yarn"]},
        {"master": "yarn", "yarn": {"resource_manager": "http://evil:8088"}},
        "in `spark.yarn.resource_manager`",
    ),
    ({"namespaces": ["team-*"]}, {"master": K8S}, "the namespace 'default'"),
    (
        {"namespaces": ["team-*"]},
        {"master": K8S, "kubernetes": {"namespace": "kube-system"}},
        "the namespace 'kube-system'",
    ),
    ({}, {"master": K8S, "kubernetes": {"context": "admin"}}, "the context 'admin'"),
    (
        {"contexts": ["etl"]},
        {"master": K8S, "kubernetes": {"context": "admin"}},
        "the context 'admin'",
    ),
    ({"packages": ["org.good:*"]}, {"packages": ["org.evil:x:1"]}, "the package 'org.evil:x:1'"),
    (
        {"packages": ["org.good:*"]},
        {"conf": {"spark.jars.packages": "org.good:x:1, org.evil:x:1"}},
        "the package 'org.evil:x:1'",
    ),
    (
        {"packages": ["org.good:*"]},
        {"conf": {"spark.jars.repositories": "https://evil/"}},
        "the repository 'https://evil/'",
    ),
    (
        {"repositories": ["https://repo/*"]},
        {"conf": {"spark.jars.repositories": "https://evil/"}},
        "the repository 'https://evil/'",
    ),
    ({"packages": ["a:*"]}, {"jars": ["https://evil/x.jar"]}, "the file 'https://evil/x.jar'"),
    ({"packages": ["a:*"]}, {"py_files": ["s3a://evil/x.zip"]}, "the file 's3a://evil/x.zip'"),
    ({"packages": ["a:*"]}, {"conf": {"spark.jars": "ivy://a:b:1"}}, "the file 'ivy://a:b:1'"),
    *(
        ({"packages": ["a:*"]}, {"conf": {name: "http://evil/x"}}, "http://evil/x")
        for name in ("spark.submit.pyFiles", "spark.archives", "spark.yarn.archive", "spark.yarn.dist.jars")
    ),
    *(
        ({"packages": ["a:*"]}, {"conf": {name: "/x"}}, f"cannot set {name}")
        for name in (
            *("spark.jars.ivySettings", "spark.plugins", "spark.driver.extraClassPath"),
            *("spark.sql.hive.metastore.jars", "spark.sql.maven.additionalRemoteRepositories"),
        )
    ),
    ({"packages": ["a:*"]}, {"conf": {"spark.yarn.dist.pyFiles": "http://evil/x"}}, "http://evil/x"),
    ({"packages": ["a:*"]}, {"conf": {"spark.yarn.jar": "http://evil/x"}}, "http://evil/x"),
    ({"packages": ["a:*"]}, {"conf": {"spark.jars": "\x01http://evil/x.jar"}}, "http://evil/x"),
    (
        {"packages": ["a:*"]},
        {"conf": {"spark.yarn.archive": "${spark.mine}", "spark.mine": "http://evil/x"}},
        "the file '${spark.mine}'",
    ),
    *(
        ({"packages": ["a:*"]}, {"conf": {name: "/x"}}, f"cannot set {name}")
        for name in (
            *("spark.driver.defaultExtraClassPath", "spark.executor.defaultExtraClassPath"),
            "spark.repl.class.uri",
        )
    ),
    (
        {"repositories": []},
        {"conf": {"spark.executor.extraJavaOptions": "${spark.mine}"}},
        "cannot set spark.executor.extraJavaOptions",
    ),
    (
        {"repositories": []},
        {"conf": {"spark.driver.extraJavaOptions": "-Dspark.jars.repositories=http://evil"}},
        "cannot set spark.driver.extraJavaOptions",
    ),
    (
        {"repositories": []},
        {"conf": {"spark.executor.extraJavaOptions": '-D"spark".jars.repositories=http://evil'}},
        "cannot set spark.executor.extraJavaOptions",
    ),
    ({"images": ["repo/good:*"]}, {"master": K8S, "kubernetes": {"image": "evil"}}, "the image 'evil'"),
    (
        {"images": ["*:stable"]},
        {"master": K8S, "kubernetes": {"image": "${spark.mine}:stable"}, "conf": {"spark.mine": "evil/x"}},
        "the image '${spark.mine}:stable'",
    ),
    (
        {"environment": []},
        {"master": K8S, "kubernetes": {"image": "evil/${env:AWS_KEY}"}},
        "variable 'AWS_KEY'",
    ),
    ({"environment": []}, {"jars": ["https://evil/${env:AWS_KEY}"]}, "variable 'AWS_KEY'"),
    *(
        ({"images": ["repo/good:*"]}, {"conf": {f"spark.kubernetes.{name}": "evil"}}, "the image 'evil'")
        for name in ("container.image", "driver.container.image", "executor.container.image")
    ),
    (
        {"service_accounts": ["etl"]},
        {"master": K8S, "kubernetes": {"service_account": "admin"}},
        "the service account 'admin'",
    ),
    *(
        (
            {"service_accounts": ["etl"]},
            {"conf": {f"spark.kubernetes.authenticate.{name}.serviceAccountName": "admin"}},
            "the service account 'admin'",
        )
        for name in ("driver", "executor")
    ),
    *(
        ({rule: ["x"]}, {"master": K8S, "kubernetes": {"pod_template": "/tmp/pod.yaml"}}, "the pod template")
        for rule in ("images", "service_accounts")
    ),
    (
        {"conf": ["spark.sql.*", "spark.executor.*"]},
        {"conf": {"spark.sql.shuffle.partitions": "8", "spark.kubernetes.driver.secrets.keys": "/etc/keys"}},
        "the property 'spark.kubernetes.driver.secrets.keys'",
    ),
    ({"environment": []}, {"conf": {"spark.kubernetes.driver.secretKeyRef.A": "keys:a"}}, "variable 'A'"),
    ({"environment": []}, {"conf": {"spark.kubernetes.executor.secretKeyRef.A": "keys:a"}}, "variable 'A'"),
    ({"environment": ["A"]}, {"conf": {"spark.hadoop.p": "env", "spark.x": "${${p}.B}"}}, "'${${p}'"),
    ({"environment": ["DATA_*"]}, {"conf": {"spark.x": "${env:AWS_KEY}"}}, "variable 'AWS_KEY'"),
    (
        {"environment": ["DATA_*"]},
        {"conf": {"spark.hadoop.x": "${env.AWS_KEY:-none}"}},
        "variable 'AWS_KEY'",
    ),
    ({"environment": ["DATA_*"]}, {"conf": {"spark.executorEnv.LD_PRELOAD": "x"}}, "variable 'LD_PRELOAD'"),
    ({"environment": []}, {"conf": {"spark.kubernetes.driverEnv.A": "x"}}, "variable 'A'"),
]


@pytest.mark.parametrize(("lists", "spark", "words"), REFUSALS)
def test_unlisted_values_are_refused_with_the_rule(
    lists: dict[str, list[str]], spark: dict[str, Any], words: str
) -> None:
    job = definition(spark)
    said = refused(policy(**lists), job, spark=job.spark)
    assert words in said
    assert "pool team" in said
    (rule,) = lists or {"contexts": []}
    assert f'policy."*".{rule}' in said or 'policy."*".repositories' in said


ALLOWED: list[tuple[dict[str, list[str]], dict[str, Any]]] = [
    ({"masters": ["local[*]"]}, {}),
    ({"masters": ["spark://*:7077"]}, {"master": "spark://one:7077,two:7077"}),
    (
        {"masters": ["spark://one:7077"]},
        {"master": "spark://one:7077", "standalone": {"ui": "one:80", "rest": "http://one:81"}},
    ),
    (
        {"masters": ["yarn", "http://rm*:8088"]},
        {"master": "yarn", "yarn": {"resource_manager": "http://rm1:8088,http://rm2:8088"}},
    ),
    ({"namespaces": ["team-*"]}, {"master": K8S, "kubernetes": {"namespace": "team-a"}}),
    ({"namespaces": []}, {"master": "local[2]"}),
    ({"contexts": ["etl*"]}, {"master": K8S, "kubernetes": {"context": "etl-1"}}),
    ({"packages": ["org.good:*"]}, {"packages": ["org.good:x:1"], "jars": ["/a.jar", "local:///b.jar"]}),
    (
        {"packages": ["a:*"], "repositories": ["https://repo/*"]},
        {"conf": {"spark.jars.repositories": "https://repo/maven"}, "jars": ["https://repo/x.jar"]},
    ),
    ({"environment": ["DATA_*"]}, {"conf": {"spark.executorEnv.DATA_DIR": "x"}}),
    ({"conf": ["spark.sql.*"]}, {"conf": {"spark.sql.shuffle.partitions": "8"}}),
    (
        {"images": ["repo/good@sha256:*"], "service_accounts": ["etl"], "files": ["/opt/pods/*"]},
        {
            "master": K8S,
            "kubernetes": {
                "image": "repo/good@sha256:0",
                "service_account": "etl",
                "pod_template": "/opt/pods/a.yaml",
            },
        },
    ),
    ({"images": [], "service_accounts": []}, {"master": "local[2]"}),
    ({}, {"conf": {"spark.kubernetes.authenticate.driver.serviceAccountName": "spark"}}),
]


@pytest.mark.parametrize(("lists", "spark"), ALLOWED)
def test_listed_values_are_allowed(lists: dict[str, list[str]], spark: dict[str, Any]) -> None:
    job = definition(spark)
    policy(**lists).check("team", job, spark=job.spark)


@pytest.mark.parametrize(
    "name",
    [
        "spark.master",
        "spark.submit.deployMode",
        "spark.kubernetes.authenticate.submission.oauthToken",
        "spark.kubernetes.authenticate.submission.caCertFile",
        "spark.kubernetes.authenticate.driver.oauthTokenFile",
        "spark.kubernetes.driver.master",
        "spark.hadoop.yarn.resourcemanager.address",
        "spark.kubernetes.trust.certificates",
        "spark.hadoop.hadoop.rpc.socket.factory.class.default",
        "spark.hadoop.hadoop.socks.server",
    ],
)
def test_no_definition_redirects_spark_submit_and_its_credentials(name: str) -> None:
    assert f"cannot set {name}" in refused(Policy(), definition({"conf": {name: "x"}}))


def test_on_kubernetes_the_worker_runs_no_packages_but_those_that_are_listed() -> None:
    """Its spark-submit has them on its class path; settings can name their classes, and Java finds some."""
    theirs = {"packages": ["org.evil:x:1"]}
    for spark in (theirs, {"conf": {"spark.jars.packages": "org.evil:x:1"}}):
        job = definition({"master": K8S, **spark})
        assert "the package 'org.evil:x:1'" in refused(Policy(), job, spark=job.spark)
        assert "the package 'org.evil:x:1'" in refused(policy(repositories=["*"]), job)
        policy(packages=["org.evil:*"]).check("team", job, spark=job.spark)
    later = definition(theirs)
    Policy().check("team", later)
    filled = pool_spark({"team": {"master": K8S, "packages": ["org.own:x:1"]}})
    assert "the package 'org.evil:x:1'" in refused(Policy(), later, spark=filled("team", later.spark))
    elsewhere = definition({"conf": {"spark.jars.repositories": "https://evil/"}})
    assert "the repository" in refused(Policy(), elsewhere, spark=filled("team", elsewhere.spark))
    own = definition({"jars": ["https://there/x.jar"]})
    Policy().check("team", own, spark=filled("team", own.spark))


def test_a_master_over_plain_http_is_refused() -> None:
    assert "https only" in refused(Policy(), definition({"master": "k8s://http://one:6443"}))


def test_defaults_of_a_pool_need_no_list() -> None:
    defaults = {
        "master": K8S,
        "kubernetes": {"namespace": "their-own", "context": "admin"},
        "packages": ["org.own:x:1"],
        "conf": {"spark.kubernetes.authenticate.submission.oauthToken": "x"},
    }
    own = definition({})
    made = policy(masters=["local[*]"], namespaces=["team"], contexts=[], packages=[])
    filled = pool_spark({"team": defaults})("team", own.spark)
    made.check("team", own, spark=filled)
    assert "the namespace 'x'" in refused(made, definition({"kubernetes": {"namespace": "x"}}), spark=filled)


def test_the_list_of_a_pool_replaces_that_of_all_pools() -> None:
    made = Policy(
        {
            "*": PoolPolicy(masters=("local[*]",), packages=()),
            "team": PoolPolicy(masters=("yarn",)),
        }
    )
    said = refused(made, definition({"master": "local[2]"}))
    assert (
        said
        == "the master 'local[2]' is refused in pool team by the setting policy.team.masters (allowed: yarn)"
    )
    said = refused(made, definition({"master": "yarn", "packages": ["a:b:1"]}))
    assert 'policy."*".packages (none is allowed)' in said
    made.check("other", definition({"master": "local[2]"}))
    made.check("team.low", definition({"master": "yarn"}))


def test_connectors_are_those_of_tables_and_of_files_that_queries_name() -> None:
    made = policy(connectors=["inline", "print"])
    scripts = """
CREATE TABLE c USING csv OPTIONS (path '/x', header 'true'); INSERT INTO p SELECT * FROM c
INSERT INTO p SELECT * FROM csv.`/x`
INSERT INTO p SELECT * FROM `csv` /* */ . /* */ `/x`
CREATE VIEW v AS SELECT * FROM CSV.`/x`; INSERT INTO p SELECT * FROM v
""".strip().splitlines()

    def check(script: str) -> None:
        job = definition(script=f"CREATE TABLE p USING print; {script}")
        made.check("team", job, plan=compile_program(job))

    check("INSERT INTO p SELECT 1")
    for script in scripts:
        with pytest.raises(PolicyRefused, match="the connector 'csv' is refused"):
            check(script)


def test_catalogs_of_spark_are_a_connector_of_their_own() -> None:
    def check(made: Policy, script: str) -> None:
        job = definition(script=script)
        made.check("team", job, plan=compile_program(job))

    denies, allows = policy(connectors=["csv"]), policy(connectors=["csv", "catalog"])
    assert (denies.denies_catalogs("team"), allows.denies_catalogs("team")) == (True, False)
    assert not Policy().denies_catalogs("team")
    for script in ("SELECT * FROM cat.db.t", "INSERT INTO db.t SELECT 1", "USE cat; SELECT 1"):
        check(Policy(), script)
        check(allows, script)
        with pytest.raises(PolicyRefused, match="the connector 'catalog' is refused"):
            check(denies, script)
    with pytest.raises(PolicyRefused, match="the connector 'json' is refused"):
        check(allows, "CREATE TABLE IF NOT EXISTS db.t (a INT) USING json")


# ---------------------------------------------------------------------- callbacks
def test_hosts_of_callbacks_are_listed_with_or_without_a_port() -> None:
    made = policy(callback_hosts=["*.example.org", "one:8080", "10.0.0.1"])
    assert made.check_callback("team", "", "Hooks.Example.org", 443) is Listed.BY_PATTERN
    assert made.check_callback("team", "", "one", 8080) is Listed.BY_NAME
    assert made.check_callback("team", "", "10.0.0.1", 80) is Listed.BY_NAME
    assert Policy().check_callback("team", "", "any", 80) is Listed.OPEN
    for host, port in (("one", 80), ("evil.org", 443), ("evil/.example.org", 443)):
        with pytest.raises(PolicyRefused, match="by the setting policy"):
            made.check_callback("team", "", host, port)


@pytest.mark.parametrize(
    "url",
    [
        "http://evil/x",
        "https://hooks.example.org@evil/x",
        "http://user:x@evil:80/",
        "https://evil#.example.org",
    ],
)
def test_a_receiver_that_is_not_listed_is_refused_at_once(url: str) -> None:
    made = policy(callback_hosts=["*.example.org"])
    assert "the callback to evil" in refused(made, definition(callback={"url": url}))


def test_a_variable_of_the_worker_goes_to_no_host_of_the_definition_s_choice() -> None:
    leak = definition(callback={"url": "https://evil/?x=${env:AWS_SECRET_ACCESS_KEY}"})
    assert "would send the worker's variable 'AWS_SECRET_ACCESS_KEY' to evil" in refused(Policy(), leak)
    policy(callback_hosts=["evil"]).check("team", leak)
    policy(environment=["AWS_*"]).check("team", leak)


@pytest.mark.parametrize(
    "url",
    [
        "${env:RECEIVER}",
        "${env:RECEIVER}/path/${env:TOKEN}",
        "https://${env:HOST}/${env:TOKEN}",
        "https://${env:USER}@${env:HOST}:${env:PORT}/${env:TOKEN}",
        "http://${env:HOST}:8443?x=${env:TOKEN}",
    ],
)
def test_a_variable_may_be_the_whole_host(url: str) -> None:
    Policy().check("team", definition(callback={"url": url}))


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.org:${env:PORT}/${env:TOKEN}",
        "https://${env:TOKEN}.evil.example.org/",
        "https://evil.example.org.${env:USER}/",
        "https://${env:USER}:8${env:PORT}/${env:TOKEN}",
        "https://${env:TOKEN}:x@${env:USER}.evil.example.org",
        "${env:RECEIVER}.evil.example.org/${env:TOKEN}",
        "${env:RECEIVER}@evil.example.org/${env:TOKEN}",
        "${env:SCHEME}://evil.example.org/${env:TOKEN}",
        "${env:SCHEME}evil.example.org/${env:TOKEN}",
        "https://${env:TOKEN}@evil.example.org/",
    ],
)
def test_a_variable_that_is_a_part_of_the_host_opens_no_host_of_the_definition_s_choice(url: str) -> None:
    job = definition(callback={"url": url})
    assert "would send the worker's variable" in refused(Policy(), job)
    policy(environment=["*"]).check("team", job)
    # The worker checks again when it has resolved the host.
    with pytest.raises(PolicyRefused, match="environment variable"):
        Policy({"*": PoolPolicy(environment=())}).check_callback("team", url, "evil.example.org", 443)
