"""The description of an ensemble: its members, this host among them, and files that cannot be used."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from queues.embedded.config import EnsembleMember
from queues.embedded.directory import IDENTITY_FILE, take_data
from queues.embedded.ensemble import Ensemble, Member, ensemble_login, own_id, parse_members
from queues.embedded.ports import free_ports
from queues.model.errors import InvalidEnsemble, PortTaken, ServerStartFailed

SCRIPT = Path(__file__).parents[2] / "deploy/make-secrets.sh"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets") / "made"
    subprocess.run([SCRIPT, folder, "zk1", "127.0.0.1", "::1"], check=True, capture_output=True)
    return folder


def ensemble(secrets: Path, host: str = "127.0.0.1") -> Ensemble:
    ports = free_ports("127.0.0.1", 3)
    text = f"{host}:{':'.join(map(str, ports))},198.51.100.1,198.51.100.2"
    login = ensemble_login(secrets / "zookeeper-password")
    return Ensemble(parse_members(text), 1, secrets / "ensemble.pem", login)


def test_members_have_usual_ports_unless_they_name_others() -> None:
    found = parse_members("zk1,zk2.example.org:2182, [::1]:1:2:3")
    assert found == (
        Member("zk1", 2181, 2888, 3888),
        Member("zk2.example.org", 2182, 2888, 3888),
        Member("::1", 1, 2, 3),
    )
    assert [member.address for member in found] == ["zk1:2181", "zk2.example.org:2182", "[::1]:1"]
    assert [member.server for member in found] == ["zk1:2888:3888", "zk2.example.org:2888:3888", "[::1]:2:3"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no server"),
        ("zk1,zk2", "needs 3 servers"),
        ("zk1,zk2,zk1", "port 2181 of zk1 twice"),
        ("zk1:1:2:3,zk1:4:5:3,zk2", "port 3 of zk1 twice"),
        ("zk1,zk2,zk3:0", "no server"),
        ("zk1,zk2,zk3:65536", "no server"),
        ("zk1,zk2,zk3:1:2:3:4", "no server"),
        ("zk1,zk2,zk 3", "no server"),
        ("zk1,zk2,zk3\nserver.4=evil:1:2", "no server"),
        ("zk1,zk2,-Dx=y", "no server"),
    ],
)
def test_a_text_that_names_no_ensemble_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidEnsemble, match=words):
        parse_members(text)


@pytest.mark.parametrize(
    ("members", "host", "number"),
    [
        ("zk1,zk2,zk3", "zk2", 2),
        ("zk1.example.org,zk2.example.org,zk3.example.org", "zk3", 3),
        ("zookeeper-0.zookeeper,zookeeper-1.zookeeper,zookeeper-2.zookeeper", "zookeeper-1", 2),
        ("zk1.a,zk1.b,zk2.a", "zk1.b", 2),
        ("zk1.a,zk1.b,zk2.a", "zk1", None),
        ("198.51.100.1,127.0.0.1,198.51.100.3", "elsewhere", 2),
        ("127.0.0.1,127.0.0.2,127.0.0.3", "127", None),
        ("198.51.100.1,198.51.100.2,198.51.100.3", "198", None),
    ],
)
def test_a_server_finds_itself_by_its_name_or_address(members: str, host: str, number: int | None) -> None:
    assert own_id(parse_members(members), host) == number


@pytest.mark.parametrize("name", ["ensemble.pem", "zookeeper-password"])
def test_a_missing_or_empty_file_of_secrets_is_refused(secrets: Path, tmp_path: Path, name: str) -> None:
    for other in ("ensemble.pem", "zookeeper-password"):
        (tmp_path / other).write_bytes((secrets / other).read_bytes())
    ensemble(tmp_path).config(tmp_path / "data", "test")
    (tmp_path / name).write_text("\n")
    with pytest.raises(InvalidEnsemble, match=name):
        ensemble(tmp_path).config(tmp_path / "data", "test")
    (tmp_path / name).unlink()
    with pytest.raises(InvalidEnsemble, match="cannot be read"):
        ensemble(tmp_path).config(tmp_path / "data", "test")


def test_a_certificate_without_its_key_and_a_short_password_are_refused(
    secrets: Path, tmp_path: Path
) -> None:
    (tmp_path / "ensemble.pem").write_bytes((secrets / "ensemble.crt").read_bytes())
    (tmp_path / "zookeeper-password").write_text("0123456789abcde")
    with pytest.raises(InvalidEnsemble, match="a key without a password and its certificate"):
        ensemble(tmp_path).config(tmp_path / "data", "test")
    (tmp_path / "ensemble.pem").write_bytes((secrets / "ensemble.pem").read_bytes())
    with pytest.raises(InvalidEnsemble, match="16 or more"):
        ensemble(tmp_path).config(tmp_path / "data", "test")


def test_no_secret_is_in_the_configuration_that_others_may_print(secrets: Path, tmp_path: Path) -> None:
    made = repr(ensemble(secrets).config(tmp_path, "test"))
    assert "PRIVATE KEY" not in made
    assert (secrets / "zookeeper-password").read_text().strip() not in made


def test_the_script_keeps_secrets_private_and_never_replaces_them(secrets: Path) -> None:
    assert sorted(path.name for path in secrets.iterdir()) == [
        ".gitignore",
        "ensemble.crt",
        "ensemble.pem",
        "zookeeper-password",
    ]
    assert {path.stat().st_mode & 0o077 for path in (secrets, *secrets.iterdir())} == {0}
    again = subprocess.run([SCRIPT, secrets, "zk1"], capture_output=True, text=True, check=False)
    assert (again.returncode, "exists" in again.stderr) == (2, True)


def test_the_script_says_which_files_go_to_which_hosts(tmp_path: Path) -> None:
    made = subprocess.run([SCRIPT, tmp_path / "made", "zk1"], capture_output=True, text=True, check=True)
    assert made.stdout == ""
    assert f"{tmp_path}/made has ensemble.pem" in made.stderr
    assert "ensemble.pem stays on hosts with servers" in made.stderr


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_adds_no_secret_that_the_steps_write_into_a_checkout(tmp_path: Path) -> None:
    shutil.copy(SCRIPT.parents[1] / ".gitignore", tmp_path)
    (tmp_path / "node-1").mkdir()
    for own in ("config.toml", "node-1/zookeeper-password"):
        (tmp_path / own).touch()
    for folder in ("secrets", "deploy/keys"):
        subprocess.run([SCRIPT, tmp_path / folder, "zk1"], capture_output=True, check=True)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    added = subprocess.run(
        ["git", "-C", tmp_path, "ls-files"], capture_output=True, text=True, check=True
    ).stdout
    assert added.split() == [".gitignore"]


def test_the_script_hides_no_other_files_of_a_folder_that_was_there(tmp_path: Path) -> None:
    subprocess.run([SCRIPT, tmp_path, "zk1"], capture_output=True, check=True)
    assert not (tmp_path / ".gitignore").exists()


def test_an_address_of_another_host_or_a_taken_port_is_refused(secrets: Path) -> None:
    with pytest.raises(ServerStartFailed, match="--id must be the number of this host"):
        ensemble(secrets, "198.51.100.7").check_ports()
    with pytest.raises(ServerStartFailed, match="no address here"):
        ensemble(secrets, "no-such-host.invalid").check_ports()
    made = ensemble(secrets)
    made.check_ports()
    with socket.create_server(("127.0.0.1", made.own.election_port)), pytest.raises(PortTaken):
        made.check_ports()


def test_a_name_that_is_loopback_here_is_refused(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /etc/hosts of Debian gives to the name of its own host."""
    found, made = socket.getaddrinfo, ensemble(secrets, "zk1")
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **named: found("127.0.1.1", *more, **named))
    with pytest.raises(ServerStartFailed, match="other hosts cannot reach"):
        made.check_ports()


@pytest.mark.parametrize("has_data", [False, True])
def test_the_data_of_another_server_is_refused(tmp_path: Path, has_data: bool) -> None:
    servers = ((1, "a:1:2"), (2, "b:1:2"), (3, "c:1:2"))
    take_data(tmp_path, EnsembleMember(1, servers, "one"))
    if has_data:
        (tmp_path / "version-2").mkdir()
        (tmp_path / "version-2" / "log.1").touch()
    take_data(tmp_path, EnsembleMember(1, servers, "one"))
    with pytest.raises(ServerStartFailed, match="of server 1 of the ensemble, and this is server 2"):
        take_data(tmp_path, EnsembleMember(2, servers, "one"))
    with pytest.raises(ServerStartFailed, match="another certificate"):
        take_data(tmp_path, EnsembleMember(1, servers, "two"))
    with pytest.raises(ServerStartFailed, match="of server 1 of an ensemble"):
        take_data(tmp_path, None)
    (tmp_path / IDENTITY_FILE).unlink()
    take_data(tmp_path, EnsembleMember(1, servers, "two"))


def test_the_data_of_a_server_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "version-2").mkdir()
    (tmp_path / "version-2" / "log.1").touch()
    take_data(tmp_path, None)
    with pytest.raises(ServerStartFailed, match="without an ensemble"):
        take_data(tmp_path, EnsembleMember(1, ((1, "a:1:2"),)))
