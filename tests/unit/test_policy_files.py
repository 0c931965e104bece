"""The files of the worker's host that a definition in cluster mode may name, and each way around them."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.tables import PoolPolicy
from orchestrator.policy.policy import Policy
from orchestrator.policy.rules import PolicyRefused
from tests.unit.test_policy import K8S, definition

RUN_AS = {"team": "nobody"}
IMAGE = {"master": K8S, "kubernetes": {"image": "spark"}}


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A folder that each user may read; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def jar(shelf: Path) -> Path:
    path = shelf / "app.jar"
    path.write_bytes(b"code")
    path.chmod(0o644)
    return path


@pytest.fixture
def secret(shelf: Path) -> Path:
    path = shelf / "password"
    path.write_bytes(b"s3cret")
    path.chmod(0o600)
    return path


def check(made: Policy, spark: dict[str, Any], pool: str = "team", **fields: Any) -> None:
    job = definition({**IMAGE, **spark}, **fields)
    made.check_files(pool, job, job.spark.target)


def refused(made: Policy, spark: dict[str, Any], **fields: Any) -> str:
    with pytest.raises(PolicyRefused) as raised:
        check(made, spark, **fields)
    return str(raised.value)


def ways(secret: Path) -> list[dict[str, Any]]:
    """All settings by which a definition could name the file."""
    name = str(secret)
    properties = (
        *("spark.jars", "spark.files", "spark.submit.pyFiles", "spark.archives", "spark.yarn.dist.files"),
        *("spark.kerberos.keytab", "spark.yarn.keytab", "spark.kubernetes.kerberos.krb5.path"),
        *("spark.yarn.jar", "spark.yarn.stagingDir"),
    )
    return [
        *({field: [name]} for field in ("jars", "py_files", "files")),
        *({"conf": {each: f"s3a://there/x, {name}#alias"}} for each in properties),
        {"kubernetes": {"image": "spark", "pod_template": name}},
        *({"files": [f"{scheme}{name}"]} for scheme in ("file:", "file://", "FILE:", "file:///", "//")),
        {"files": [f"file://localhost{name}"]},
        {"files": [name.replace("password", "pass*")]},
        {"files": [name.replace("password", "passwor[d]")]},
        {"files": ["file:" + name.replace("password", "%70assword")]},
        {"files": [f"{secret.parent}/../{secret.parent.name}/password"]},
        {"files": [str(secret.parent)]},
        {"conf": {"spark.files": "password"}},
    ]


def test_with_a_user_of_its_own_a_job_gets_no_file_that_is_not_for_all(secret: Path, jar: Path) -> None:
    made = Policy({}, RUN_AS)
    for way in ways(secret):
        assert "refused in pool team" in refused(made, way), way
    assert "refused in pool team" in refused(Policy({}, {"*": "nobody"}), {"files": [str(secret)]})
    assert 'policy."*".files' in refused(made, {}, jar=str(secret), main_class="A")
    for way in ({"files": [f"{jar}#alias"]}, {"files": [f"file://{jar}"]}, {"jars": ["local:///opt/x.jar"]}):
        check(made, way)
    check(made, {"files": [jar.name]}, directory=str(jar.parent))
    assert "whole path" in refused(made, {"conf": {"spark.files": jar.name}}, directory=str(jar.parent))
    secret.chmod(0o644)
    check(made, {"files": [str(secret)]})


def test_a_file_that_another_user_could_exchange_is_not_for_all(shelf: Path, jar: Path, secret: Path) -> None:
    """Between the check and the upload it could become a link to a secret."""
    made = Policy({}, RUN_AS)
    link = shelf / "link.jar"
    link.symlink_to(jar)
    check(made, {"jars": [str(link)]})
    link.unlink()
    link.symlink_to(secret)
    assert "refused" in refused(made, {"jars": [str(link)]})
    jar.chmod(0o666)
    assert "refused" in refused(made, {"jars": [str(jar)]})
    jar.chmod(0o644)
    shelf.chmod(0o777)
    assert "refused" in refused(made, {"jars": [str(jar)]})
    shelf.chmod(0o700)
    assert "refused" in refused(made, {"jars": [str(jar)]}), "the user could not read it"
    if os.geteuid() == 0:
        shelf.chmod(0o755)
        os.chown(jar, 61_234, 61_234)
        assert "refused" in refused(made, {"jars": [str(jar)]})


def test_a_list_replaces_that_rule_and_links_do_not_lead_out_of_it(
    shelf: Path, jar: Path, secret: Path
) -> None:
    folder = shelf / "jobs"
    folder.mkdir()
    (folder / "keys").write_bytes(b"not for all")
    (folder / "keys").chmod(0o600)
    (folder / "link").symlink_to(secret)
    made = Policy({"*": PoolPolicy(files=(f"{folder}/*",))})
    check(made, {"files": [str(folder / "keys")]})
    for name in (jar, secret, folder / "link", f"{folder}/../password", f"{folder}/k*"):
        assert "refused in pool team" in refused(made, {"files": [str(name)]}), name
    assert f"allowed: {folder}/*" in refused(made, {"files": [str(jar)]})


@pytest.mark.parametrize(
    "name",
    [
        "spark.jars.ivySettings",
        "spark.jars.ivy",
        "spark.driver.defaultExtraClassPath",
        "spark.hadoop.hadoop.kerberos.kinit.command",
        "spark.hadoop.hadoop.security.group.mapping",
    ],
)
def test_no_job_of_another_user_or_on_kubernetes_says_what_runs_as_the_worker(name: str) -> None:
    assert f"cannot set {name}" in refused(Policy({}, RUN_AS), {"conf": {name: "/tmp/x"}})
    # Whatever user the drivers have, the spark-submit for Kubernetes has the worker's credentials.
    assert f"cannot set {name}" in refused(Policy(), {"conf": {name: "/tmp/x"}})
    check(Policy(), {"master": "yarn", "deploy_mode": "cluster", "conf": {name: "/tmp/x"}})


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.yarn.dist.files": "viewfs://c/x/secret"},
        {"spark.files": "har://file-/tmp/x.har/secret"},
        {"spark.hadoop.fs.viewfs.mounttable.c.link./x": "file:///etc"},
        {"spark.hadoop.fs.mine.impl": "org.apache.hadoop.fs.HarFileSystem", "spark.files": "mine://x/secret"},
    ],
)
def test_no_address_of_another_scheme_leads_to_files_of_this_host(conf: dict[str, str]) -> None:
    listed = Policy({"*": PoolPolicy(files=("/opt/jobs/*",))})
    on_yarn = {"master": "yarn", "deploy_mode": "cluster", "conf": conf}
    for made, spark in ((listed, on_yarn), (listed, {"conf": conf}), (Policy({}, RUN_AS), {"conf": conf})):
        assert "refused in pool team" in (said := refused(made, spark)) or "cannot set" in said
    check(Policy(), on_yarn)


def test_the_folder_in_which_the_worker_leaves_what_nodes_read_is_listed_too(shelf: Path) -> None:
    spark = {
        "master": "spark://one:7077",
        "deploy_mode": "cluster",
        "standalone": {"staging": str(shelf / "stage")},
    }
    assert "stage' is refused in pool team" in refused(Policy({}, RUN_AS), spark)
    assert "stage' is refused in pool team" in refused(Policy({"*": PoolPolicy(files=())}), spark)
    check(Policy({"*": PoolPolicy(files=(f"{shelf}/*",))}), spark)
    check(Policy(), spark)


def test_where_the_driver_could_read_it_anyhow_nothing_is_asked(secret: Path) -> None:
    for way in ways(secret):
        check(Policy(), way)
        check(Policy({}, RUN_AS), way, pool="other")
    for spark in ({"master": "local[1]"}, {"master": "yarn"}, {"master": "yarn", "deploy_mode": "cluster"}):
        job = definition({**spark, "files": [str(secret)]})
        Policy({}, RUN_AS).check_files("team", job, job.spark.target)
