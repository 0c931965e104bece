"""A driver never presents the credentials of its worker to ZooKeeper."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.config.zookeeper import DriverAccess, LoginFile
from queues.session import Acl, Login, SessionSettings, Tls

WORKER = SessionSettings(
    "zk:2281/team",
    session_timeout=7,
    tls=Tls("ca.pem", "worker.pem", "worker.key", "key-password", verify_hostname=False),
    sasl=Login("worker", "worker-secret"),
    digest=Login("worker", "worker-secret"),
    acl=Acl.CREATOR,
)


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "drivers-password"
    path.write_text("for all drivers\n", "utf-8")
    return path


def test_of_its_worker_it_has_the_address_the_times_and_the_authority_alone() -> None:
    found, tls = DriverAccess().settings(WORKER, None, ()), Tls("ca.pem", verify_hostname=False)
    assert found == SessionSettings("zk:2281/team", session_timeout=7, tls=tls)
    assert "worker" not in str(found.for_plan())


def test_with_the_login_of_its_attempt_it_shows_what_it_makes_to_its_worker_alone() -> None:
    login = Login.random("run-1")
    found = DriverAccess().settings(WORKER, login, [("sasl", "worker"), ("x509", "CN=worker")])
    assert found.digest == login
    own = (31, "digest", login.digest_id)
    assert found.rights == (own, (1, "sasl", "worker"), (1, "x509", "CN=worker"))


@pytest.mark.parametrize(
    ("secret", "owners", "readers"),
    [
        ("x" * 22, [("digest", "worker:hash")], [(1, "digest", "worker:hash")]),
        ("x" * 21, [("digest", "worker:hash")], [(1, "world", "anyone")]),
        (
            "x" * 21,
            [("sasl", "worker"), ("digest", "team:hash")],
            [(1, "sasl", "worker"), (1, "world", "anyone")],
        ),
    ],
    ids=["long", "short", "short, of a team"],
)
def test_the_hash_of_a_password_that_could_be_guessed_is_not_shown_to_drivers(
    secret: str, owners: list[tuple[str, str]], readers: list[tuple[int, str, str]]
) -> None:
    worker = replace(WORKER, digest=Login("worker", secret))
    found = DriverAccess().settings(worker, Login.random("run-1"), owners)
    assert list(found.rights[1:]) == readers


@pytest.mark.parametrize("scheme", ["sasl", "digest"])
def test_the_credentials_of_drivers_are_configured_separately(password: Path, scheme: str) -> None:
    login = LoginFile.model_validate({"scheme": scheme, "user": "drivers", "password_file": password})
    access = DriverAccess(certificate_file=password, key_file=password, login=login)
    found = access.settings(WORKER, None, ())
    presented = Login("drivers", password_file=str(password))
    assert (found.sasl, found.digest) == ((presented, None) if scheme == "sasl" else (None, presented))
    assert found.tls == Tls("ca.pem", str(password), str(password), verify_hostname=False)
    own = Login.random("run-1")
    assert access.settings(WORKER, own, ()).digest == own
