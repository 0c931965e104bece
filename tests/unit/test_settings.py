import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.config.settings import Settings, hosts_origin, load_settings
from orchestrator.config.zookeeper import LoginFile
from orchestrator.model.errors import SettingsError
from queues.session import Acl
from tests.another_user import as_another_user


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
    file.touch()
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
        (
            "zookeeper_hosts = 'h:1'\n[zookeeper_group]\nuser = 'team'\npassword_file = '/etc/passwd'",
            "each member also needs zookeeper_login with scheme sasl",
        ),
        ("zookeeper_hosts = 'h:1'\nzookeeper_acl = 'mine'", "field 'zookeeper_acl'"),
        ("[zookeeper_tls]\nverify_hostname = true", "need zookeeper_hosts, which is not set"),
        ("[zookeeper_tls]\nca_file = '/no/such'", "the file /no/such cannot be read: No such file"),
        ("[zookeeper_login]\nuser = 'ada'", "'zookeeper_login.password_file' is missing"),
        ("[zookeeper_login]\nuser = 'ada'\npassword = 'x'", "unknown field 'zookeeper_login.password'"),
        (
            "zookeeper_hosts = 'localhost,h'\n[zookeeper_login]\nuser = 'a'\npassword_file = '/etc/passwd'",
            "'sasl' is for servers that speak TLS",
        ),
        (
            "zookeeper_hosts = 'h'\n[zookeeper_drivers.login]\nuser = 'a'\npassword_file = '/etc/passwd'",
            "zookeeper_drivers.login with scheme 'sasl' is for servers that speak TLS",
        ),
        (
            "[zookeeper_login]\nscheme = 'digest'\nuser = 'ada:x'\npassword_file = '/etc/passwd'",
            "field 'zookeeper_login.user'",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named(bare_environment: Path, text: str, words: str) -> None:
    bare_environment.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=words.replace("?", r"\?")):
        load_settings()


def test_a_folder_behind_the_hosts_is_theirs() -> None:
    assert load_settings(zookeeper_hosts="a:2181,b/app/jobs").zookeeper_hosts == "a:2181,b/app/jobs"


def test_with_a_login_or_certificate_nodes_belong_to_who_makes_them_unless_they_are_to_be_open(
    bare_environment: Path, tmp_path: Path
) -> None:
    file = tmp_path / "password or certificate"
    file.write_text("the-secret\n", "utf-8")
    login = f"[zookeeper_login]\nscheme = 'digest'\nuser = 'ada'\npassword_file = '{file}'\n"
    for text, acl in (
        ("", Acl.OPEN),
        (login, Acl.CREATOR),
        (f"[zookeeper_tls]\nca_file = '{file}'\n", Acl.OPEN),
        (f"[zookeeper_tls]\ncertificate_file = '{file}'\n", Acl.CREATOR),
        ("zookeeper_acl = 'open'\n" + login, Acl.OPEN),
    ):
        bare_environment.write_text("zookeeper_hosts = 'h:1'\n" + text, "utf-8")
        assert load_settings().acl is acl, text


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


@pytest.mark.parametrize(
    ("hosts", "more"),
    [("localhost:1,127.0.0.2,[::1]:2/app", ""), ("h:1", "without_tls = true"), ("h:1", "scheme = 'digest'")],
)
def test_a_login_by_sasl_goes_without_tls_on_loopback_and_where_that_is_said(
    bare_environment: Path, hosts: str, more: str
) -> None:
    bare_environment.write_text(
        f"zookeeper_hosts = '{hosts}'\n[zookeeper_login]\nuser = 'a'\npassword_file = '/etc/passwd'\n{more}",
        "utf-8",
    )
    assert load_settings().zookeeper_login is not None


@pytest.mark.parametrize("make", [None, Path.mkdir, os.mkfifo], ids=["missing", "directory", "fifo"])
def test_a_file_that_is_named_and_cannot_be_read_is_an_error(
    bare_environment: Path, make: Callable[[Path], None] | None
) -> None:
    bare_environment.unlink()
    if make is not None:
        make(bare_environment)
    words = rf"{bare_environment}( cannot be read)?: .*ORCHESTRATOR_CONFIG names it"
    with pytest.raises(SettingsError, match=words):
        load_settings()


@pytest.mark.parametrize(
    ("table", "field"),
    [
        *(("zookeeper_login", "password_file"), ("zookeeper_group", "password_file")),
        *(("zookeeper_tls", "ca_file"), ("zookeeper_tls", "certificate_file"), ("zookeeper_tls", "key_file")),
        *(("zookeeper_drivers", "certificate_file"), ("zookeeper_drivers", "key_file")),
        *(("logs", "key_file"), ("logs", "ca_file"), ("archive", "key_file"), ("archive", "ca_file")),
        *(("metrics", "token_file"), ("metrics", "certificate_file"), ("metrics", "key_file")),
    ],
)
@pytest.mark.parametrize("what", ["pipe", "device"])
@pytest.mark.timeout(20)  # a pipe would block
def test_no_file_of_a_secret_or_certificate_is_waited_for_or_has_no_end(
    bare_environment: Path, tmp_path: Path, table: str, field: str, what: str
) -> None:
    path = Path("/dev/zero") if what == "device" else tmp_path / "pipe"
    if what == "pipe":
        os.mkfifo(path)
    needed = {
        "password_file": "user = 'a'",
        "archive": "url = 'https://localhost:1'",
        "key_file": "certificate_file = '/etc/passwd'" if table == "metrics" else "",
    }
    more = needed.get(table) or needed.get(field, "")
    text = f"zookeeper_hosts = 'localhost:1'\n[{table}]\n{more}\n{field} = '{path}'"
    bare_environment.write_text(text, "utf-8")
    with pytest.raises(SettingsError, match=f"field '{table}.*{path} is a {what}"):
        load_settings()


def test_parts_of_a_variable_win_over_its_text_in_whatever_order_they_come(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bare_environment.exists()
    names = ["ORCHESTRATOR_LOGS__DIR", "ORCHESTRATOR_LOGS__DIR__B"]
    for first, second in (names, reversed(names)):
        for name in names:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(first, "/x")
        monkeypatch.setenv(second, "/y")
        with pytest.raises(SettingsError, match=r"field 'logs.dir'"):
            load_settings()


def test_a_file_that_may_not_be_read_is_an_error(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare_environment.parent.chmod(0o755)
    bare_environment.write_text("slots = 2\n", "utf-8")
    bare_environment.chmod(0o600)

    def load() -> str:
        try:
            return str(load_settings().slots)
        except SettingsError as error:
            return str(error)

    assert "cannot be read: Permission denied" in as_another_user(load)
    home = bare_environment.parent / "spark-job-orchestrator"
    home.mkdir()
    bare_environment.rename(home / "config.toml")
    monkeypatch.delenv("ORCHESTRATOR_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.parent))
    assert "cannot be read: Permission denied" in as_another_user(load)
    assert load() == "2"


def test_the_file_at_its_default_path_need_not_exist(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert bare_environment.exists()
    monkeypatch.delenv("ORCHESTRATOR_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    assert load_settings().slots >= 1
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", os.devnull)
    assert load_settings().slots >= 1


def test_a_file_that_is_far_too_large_is_no_settings(bare_environment: Path) -> None:
    bare_environment.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(SettingsError, match="longer than 1,048,576 bytes"):
        load_settings()


def test_an_error_about_zookeeper_names_what_gave_its_hosts(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bare_environment
    assert hosts_origin(Settings(zookeeper_hosts="a:1")) == "zookeeper_hosts"
    file.write_text("zookeeper_hosts = 'a:1'\n", "utf-8")
    assert hosts_origin(load_settings()) == f"zookeeper_hosts in {file}"
    monkeypatch.setenv("ZOOKEEPER_HOSTS", "b:1")
    assert hosts_origin(load_settings()) == "ZOOKEEPER_HOSTS"
    monkeypatch.setenv("ORCHESTRATOR_ZOOKEEPER_HOSTS", "c:1")
    assert hosts_origin(load_settings()) == "ORCHESTRATOR_ZOOKEEPER_HOSTS"
    own = LoginFile(scheme="digest", user="ada", password_file=file, own_server=True)
    found = load_settings().model_copy(update={"zookeeper_hosts": "127.0.0.1:2", "zookeeper_login": own})
    assert hosts_origin(found) == f"the state directory {found.state_dir}, where the server has noted it"
