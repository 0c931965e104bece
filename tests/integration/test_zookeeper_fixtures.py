from pathlib import Path

import pytest

from tests.servers.zookeeper import zookeeper_server


def test_tests_use_the_server_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZOOKEEPER_HOSTS", "zk1:2181,zk2:2181")
    with zookeeper_server(tmp_path) as hosts:
        assert hosts == "zk1:2181,zk2:2181"


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_tests_without_a_server_are_skipped_locally_and_fail_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.delenv("ZOOKEEPER_HOSTS", raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match=r"no ZooKeeper: .*Java 17 or newer"), zookeeper_server(tmp_path):
        pass
