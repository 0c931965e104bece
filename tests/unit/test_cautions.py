from pathlib import Path

import pytest
from loguru import logger

from orchestrator.compose import open_logs
from orchestrator.config.cautions import Caution, Exposure, cautions
from orchestrator.config.settings import Settings
from orchestrator.config.tables import ArchiveSettings
from orchestrator.config.zookeeper import GroupLogin, LoginFile, TlsFiles
from orchestrator.doctor.findings import FindingKind, Severity
from orchestrator.doctor.rights import check_settings
from orchestrator.logs.settings import LogSettings
from queues.session import Acl


def secret(folder: Path, mode: int) -> Path:
    file = folder / f"secret-{mode:o}"
    file.write_text("the-secret\n", "utf-8")
    file.chmod(mode)
    return file


def found(settings: Settings) -> list[tuple[Exposure, str]]:
    return [(caution.exposure, caution.place) for caution in cautions(settings)]


def digest(file: Path, hosts: str) -> Settings:
    return Settings(
        zookeeper_hosts=hosts,
        zookeeper_login=LoginFile(scheme="digest", user="ada", password_file=file, without_tls=False),
        zookeeper_acl=Acl.CREATOR,
    )


def test_a_password_file_that_others_may_read_is_reported(tmp_path: Path) -> None:
    assert found(digest(secret(tmp_path, 0o600), "localhost:1")) == []
    for mode, readers in ((0o640, "its group"), (0o644, "every user of this host")):
        file = secret(tmp_path, mode)
        (caution,) = cautions(digest(file, "localhost:1"))
        assert isinstance(caution, Caution)
        assert (caution.exposure, caution.place) == (Exposure.READABLE_FILE, str(file))
        assert readers in caution.what
        assert "the-secret" not in repr(caution)


def test_a_login_that_leaves_the_host_without_tls_is_reported(tmp_path: Path) -> None:
    file = secret(tmp_path, 0o600)
    assert found(digest(file, "localhost:1,zk:2181")) == [(Exposure.NO_TLS, "zookeeper_login")]
    settings = digest(file, "zk:2181").model_copy(update={"zookeeper_tls": TlsFiles.model_construct()})
    assert found(settings) == []


def test_the_login_of_a_team_is_looked_at_like_ones_own(tmp_path: Path) -> None:
    own, of_team = secret(tmp_path, 0o600), secret(tmp_path, 0o644)
    settings = Settings(
        zookeeper_hosts="zk:2181",
        zookeeper_login=LoginFile(scheme="sasl", user="ada", password_file=own, without_tls=True),
        zookeeper_group=GroupLogin(user="team", password_file=of_team),
        zookeeper_acl=Acl.CREATOR,
    )
    assert found(settings) == [
        (Exposure.READABLE_FILE, str(of_team)),
        (Exposure.NO_TLS, "zookeeper_login"),
        (Exposure.NO_TLS, "zookeeper_group"),
    ]


def test_a_tree_that_is_open_to_all_who_reach_it_is_reported(tmp_path: Path) -> None:
    login = digest(secret(tmp_path, 0o600), "zk:2181")
    is_open = [(Exposure.OPEN_TREE, "zookeeper_acl")]
    assert found(Settings(zookeeper_hosts="zk:2181")) == is_open
    assert found(Settings(zookeeper_hosts="localhost:2181,zk:2181")) == is_open
    assert found(Settings(zookeeper_hosts="127.0.0.1:2181")) == []
    assert is_open[0] in found(login.model_copy(update={"zookeeper_acl": Acl.OPEN}))
    assert is_open[0] not in found(login)
    (finding,) = check_settings(Settings(zookeeper_hosts="zk:2181"))
    assert (finding.kind, finding.severity) == (FindingKind.OPEN_TREE, Severity.NOTE)


def test_keys_for_a_server_without_tls_are_reported(tmp_path: Path) -> None:
    file = secret(tmp_path, 0o600)
    for url, expected in (
        ("http://search:9200", [(Exposure.NO_TLS, "logs.url"), (Exposure.NO_TLS, "archive.url")]),
        ("https://search:9200", []),
        ("http://127.0.0.1:9200", []),
    ):
        settings = Settings(
            logs=LogSettings(url=url, key_file=file), archive=ArchiveSettings(url=url, key_file=file)
        )
        assert found(settings) == expected


def test_every_kind_of_key_file_is_looked_at(tmp_path: Path) -> None:
    file = secret(tmp_path, 0o644)
    settings = Settings.model_validate(
        {
            "zookeeper_hosts": "localhost:1",
            "zookeeper_tls": {"key_file": file, "certificate_file": file},
            "logs": {"url": "https://h:1", "key_file": file},
            "archive": {"url": "https://h:1", "key_file": file},
            "metrics": {"address": "1", "token_file": file, "certificate_file": file},
        }
    )
    assert [caution.what.partition(" is in ")[0] for caution in cautions(settings)] == [
        "the key of zookeeper_tls",
        "the key of logs",
        "the key of archive",
        "the token of metrics",
        "the key of metrics",
    ]


def test_settings_of_spark_with_a_secret_are_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = secret(tmp_path, 0o644)
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(config))
    conf = {"spark.hadoop.fs.s3a.secret.key": "the-secret"}
    settings = Settings.model_validate({"spark": {"*": {"conf": conf}}})
    assert found(settings) == [(Exposure.READABLE_FILE, str(config))]


def test_a_program_that_keeps_logs_says_it_once_at_its_start(tmp_path: Path) -> None:
    file, said = secret(tmp_path, 0o644), list[str]()
    handler = logger.add(
        lambda message: said.append(message.record["message"]), level="WARNING", format="{message}"
    )
    try:
        settings = digest(file, "localhost:1").model_copy(update={"state_dir": tmp_path / "state"})
        with open_logs(settings):
            pass
    finally:
        logger.remove(handler)
    (words,) = [words for words in said if str(file) in words]
    assert words.endswith(f"which every user of this host may read; `chmod go= {file}`")


def test_the_doctor_reports_them(tmp_path: Path) -> None:
    file = secret(tmp_path, 0o644)
    findings = list(check_settings(digest(file, "zk:1")))
    assert [(finding.kind, finding.path, finding.severity) for finding in findings] == [
        (FindingKind.READABLE_SECRET, str(file), Severity.WARNING),
        (FindingKind.UNENCRYPTED_LOGIN, "zookeeper_login", Severity.WARNING),
    ]
