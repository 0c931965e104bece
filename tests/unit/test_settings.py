from pathlib import Path

import pytest

from orchestrator.errors import SettingsError
from orchestrator.settings import load_settings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in (
        "ZOOKEEPER_HOSTS",
        "ORCHESTRATOR_ZOOKEEPER_HOSTS",
        "ORCHESTRATOR_SLOTS",
        "ORCHESTRATOR_STATE_DIR",
        "ORCHESTRATOR_ZOOKEEPER_ACL",
        "ORCHESTRATOR_ZOOKEEPER_LOGIN__USER",
        "ORCHESTRATOR_ZOOKEEPER_LOGIN__PASSWORD_FILE",
    ):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "config.toml"
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(file))
    return file


def test_defaults_need_nothing() -> None:
    settings = load_settings()
    assert settings.zookeeper_hosts == ""
    assert settings.root == "/orchestrator"
    assert settings.slots >= 1


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare_environment.write_text('slots = 2\nretention = "3d"\nzookeeper_hosts = "file:1"\n', encoding="utf-8")
    assert (load_settings().slots, load_settings().retention) == (2, 3 * 86400)
    monkeypatch.setenv("ORCHESTRATOR_SLOTS", "3")
    monkeypatch.setenv("ZOOKEEPER_HOSTS", "env:1")
    assert load_settings().slots == 3
    assert load_settings().zookeeper_hosts == "env:1"
    assert load_settings(slots=4).slots == 4
    assert load_settings(slots=None).slots == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slot = 2", "unknown field 'slot'; did you mean 'slots'?"),
        ('slots = "many"', "field 'slots'"),
        ('retention = "for ever"', "not a duration"),
        ('root = "no-slash"', "is not a path"),
        ("slots ==", "config.toml"),
        ('zookeeper_hosts = "h:2181/"', "is not host:port,host:port/folder"),
        ('zookeeper_hosts = "/app"', "is not host:port,host:port/folder"),
        ('zookeeper_hosts = "h:0/app"', "'h:0' is not host:port"),
        ("zookeeper_acl = 'creator'", "needs zookeeper_login, or a certificate"),
        ("zookeeper_hosts = 'h:1'\nzookeeper_acl = 'mine'", "field 'zookeeper_acl'"),
        ("[zookeeper_tls]\nverify_hostname = true", "are for the servers that zookeeper_hosts names"),
        ("[zookeeper_tls]\nca_file = '/no/such'", "the file /no/such cannot be read: No such file"),
        ("[zookeeper_login]\nuser = 'ada'", "'zookeeper_login.password_file' is missing"),
        ("[zookeeper_login]\nuser = 'ada'\npassword = 'x'", "unknown field 'zookeeper_login.password'"),
    ],
)
def test_a_mistake_in_the_file_is_named(bare_environment: Path, text: str, words: str) -> None:
    bare_environment.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=words.replace("?", r"\?")):
        load_settings()


def test_a_folder_behind_the_hosts_is_theirs() -> None:
    assert load_settings(zookeeper_hosts="a:2181,b/app/jobs").zookeeper_hosts == "a:2181,b/app/jobs"


def test_a_login_comes_from_the_environment_or_from_a_table_of_the_file(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("the-secret\n", "utf-8")
    bare_environment.write_text(
        f"zookeeper_hosts = 'h:1'\nzookeeper_acl = 'creator'\n"
        f"[zookeeper_login]\nscheme = 'digest'\nuser = 'ada'\npassword_file = '{password}'\n",
        "utf-8",
    )
    login = load_settings().zookeeper_login
    assert login is not None
    assert (login.scheme, login.login().user, login.login().secret()) == ("digest", "ada", "the-secret")
    monkeypatch.setenv("ORCHESTRATOR_ZOOKEEPER_LOGIN__USER", "bob")
    changed = load_settings()
    assert changed.zookeeper_login is not None
    assert changed.zookeeper_login.user == "bob"
    assert "the-secret" not in repr(changed)
