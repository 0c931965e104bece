from pathlib import Path

import pytest

from spark_runner.protocol.errors import NotConfigured
from spark_runner.runners.yarn.site import conf_dir, needs_kerberos, resource_manager_urls
from tests.servers.yarn_daemons import write_site

RM = "yarn.resourcemanager"
HA = {f"{RM}.ha.enabled": "true", f"{RM}.ha.rm-ids": "a, b"}


def urls(folder: Path, properties: dict[str, str]) -> list[str]:
    write_site(folder / "yarn-site.xml", properties)
    return resource_manager_urls(folder)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({f"{RM}.webapp.address": "rm:8188"}, ["http://rm:8188"]),
        ({f"{RM}.hostname": "rm"}, ["http://rm:8088"]),
        (
            {f"{RM}.hostname": "rm", f"{RM}.webapp.address": "${yarn.resourcemanager.hostname}:1"},
            ["http://rm:1"],
        ),
        ({f"{RM}.webapp.address": "rm"}, ["http://rm:8088"]),
        ({f"{RM}.hostname": "rm", "yarn.http.policy": "HTTPS_ONLY"}, ["https://rm:8090"]),
        (
            {
                f"{RM}.webapp.https.address": "rm:1",
                f"{RM}.webapp.address": "rm:2",
                "yarn.http.policy": "https_only",
            },
            ["https://rm:1"],
        ),
        ({**HA, f"{RM}.hostname.a": "x", f"{RM}.hostname.b": "y"}, ["http://x:8088", "http://y:8088"]),
        (
            {**HA, f"{RM}.webapp.address.a": "x:1", f"{RM}.webapp.address.b": "y:2", f"{RM}.hostname": "z"},
            ["http://x:1", "http://y:2"],
        ),
        ({f"{RM}.ha.enabled": "false", f"{RM}.ha.rm-ids": "a", f"{RM}.hostname": "z"}, ["http://z:8088"]),
    ],
)
def test_the_addresses_of_all_resource_managers_are_read(
    tmp_path: Path, properties: dict[str, str], expected: list[str]
) -> None:
    assert urls(tmp_path, properties) == expected


def test_a_variable_of_the_environment_is_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RM_HOST", "rm7")
    assert urls(tmp_path, {f"{RM}.hostname": "${env.RM_HOST}"}) == ["http://rm7:8088"]
    assert urls(tmp_path, {f"{RM}.hostname": "${env.RM_NONE:-rm8}"}) == ["http://rm8:8088"]


def test_a_value_that_names_itself_comes_to_an_end(tmp_path: Path) -> None:
    assert urls(tmp_path, {f"{RM}.hostname": "${yarn.resourcemanager.hostname}"})


@pytest.mark.parametrize("properties", [{}, {"other": "x"}, HA])
def test_a_configuration_without_a_resource_manager_says_what_is_missing(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    with pytest.raises(NotConfigured, match=r"yarn-site\.xml"):
        urls(tmp_path, properties)


def test_a_file_that_is_no_xml_is_named(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration>")
    with pytest.raises(NotConfigured, match=r"yarn-site\.xml cannot be read"):
        resource_manager_urls(tmp_path)


def test_the_folder_is_the_one_that_spark_submit_takes(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert conf_dir({"HADOOP_CONF_DIR": str(tmp_path), "YARN_CONF_DIR": str(other)}) == tmp_path
    assert conf_dir({"YARN_CONF_DIR": str(other)}) == other
    with pytest.raises(NotConfigured, match="set HADOOP_CONF_DIR"):
        conf_dir({})
    with pytest.raises(NotConfigured, match="not a folder"):
        conf_dir({"HADOOP_CONF_DIR": str(tmp_path / "missing")})


def test_kerberos_is_seen(tmp_path: Path) -> None:
    write_site(tmp_path / "yarn-site.xml", {f"{RM}.hostname": "rm"})
    assert not needs_kerberos(tmp_path)
    write_site(tmp_path / "core-site.xml", {"hadoop.http.authentication.type": "kerberos"})
    assert needs_kerberos(tmp_path)
