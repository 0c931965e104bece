"""TLS, logins, access rights and chroots of a session, against a server that requires all of them."""

import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionDropped

from queues.model.errors import AccessDenied, Conflict, QueueError, Unreachable
from queues.model.names import Layout
from queues.model.operations import PERM_READ, Create, Delete, Grant, Set
from queues.queue_set import QueueSet
from queues.session import Acl, Login, Session, SessionSettings, Tls
from queues.store.commit import commit
from tests.servers.secured import ADA, BOB, OTHER_SECRET, SECRET, Secured, bundling_proxy
from tests.waiting import wait_until


def settings(hosts: str, **more: Any) -> SessionSettings:
    return SessionSettings(hosts, session_timeout=4, connect_timeout=10, call_timeout=10, **more)


@contextmanager
def refused(words: str) -> Iterator[None]:
    """The block raises AccessDenied with these words, long before a timeout and without the password."""
    started = time.monotonic()
    with pytest.raises(AccessDenied, match=words) as caught:
        yield
    assert time.monotonic() - started < 8
    assert not any(secret in str(caught.value) for secret in (SECRET, OTHER_SECRET))


# ---------------------------------------------------------------------- settings
def test_settings_never_show_a_password() -> None:
    tls = Tls("ca.pem", "client.pem", key_password=SECRET)
    shown = settings("h1:2181", tls=tls, sasl=ADA, digest=BOB)
    for text in (repr(shown), str(shown), f"{shown}"):
        assert SECRET not in text
        assert OTHER_SECRET not in text
    assert "ada" in repr(shown)


def test_settings_arrive_in_another_process_as_they_are() -> None:
    tls, rights = Tls("ca.pem"), (Grant(1, "digest", "ada:hash"), Grant(31, "x509", "CN=ada"))
    original = settings("h1:2181,h2:2181/app", tls=tls, digest=BOB, rights=rights)
    assert SessionSettings.from_plan(json.loads(json.dumps(original.for_plan()))) == original
    assert SessionSettings.from_plan(settings("h1").for_plan()) == settings("h1")


def test_a_random_login_is_named_by_its_hash_as_zookeeper_does(secured: Secured) -> None:
    login, other = Login.random("run-1"), Login.random("run-1")
    assert login.secret() != other.secret()
    assert login.secret() not in repr(login)
    with with_digest(secured.plain, ADA, Acl.CREATOR) as worker:
        commit(
            worker, [Create("/granted", b"1", grant=Grant(1, "digest", login.digest_id)), Create("/closed")]
        )
        owners = worker.owners("/closed")
        with Session(settings(secured.plain, digest=login)) as guest:
            assert guest.get("/granted") is not None
            with refused("/closed"):
                guest.get("/closed")
            with refused("/granted"):
                commit(guest, [Set("/granted", b"", -1)])
        with Session(settings(secured.plain, digest=other)) as stranger, refused("/granted"):
            stranger.get("/granted")
        rights = tuple(Grant(PERM_READ, scheme, name) for scheme, name in owners)
        with Session(settings(secured.plain, digest=login, rights=rights)) as guest:
            commit(guest, [Create("/shared")])
        assert worker.get("/shared") is not None
        commit(worker, [Delete("/granted"), Delete("/closed"), Delete("/shared")])


def test_nodes_for_their_creator_only_need_a_creator_that_can_be_known() -> None:
    with pytest.raises(ValueError, match="who is the creator"):
        settings("h1:2181", acl="creator")
    with pytest.raises(ValueError, match="'ada' needs a password"):
        Login("ada")


def test_a_server_that_took_no_login_of_a_creator_says_what_to_do(secured: Secured) -> None:
    session = with_digest(secured.plain, ADA, Acl.CREATOR)
    session._client.auth_data.clear()  # noqa: SLF001 - as for a certificate where the servers require none
    with session, refused("accepted neither a login nor a certificate"):
        session.ensure_path("/owned")


@pytest.mark.parametrize(
    "more",
    [{"tls": Tls("/no/such/ca.pem")}, {"sasl": Login("ada", "", "/no/such/file")}],
    ids=["ca", "password"],
)
def test_a_file_that_cannot_be_read_is_reported_at_once(more: dict[str, Any]) -> None:
    with refused("file of the settings cannot be used"):
        Session(settings("127.0.0.1:1", **more))


# ---------------------------------------------------------------------- TLS
def test_requests_in_flight_over_tls_are_all_answered(secured: Secured) -> None:
    with Session(settings(secured.hosts(), tls=secured.certificates.tls)) as session:
        session.ensure_path("/tls")
        posted = [session.post([Create(f"/tls/{number}", b"x" * 1000)]) for number in range(200)]
        assert [multi.results(10) for multi in posted] == [[True]] * 200
        found = session.get_many([f"/tls/{number}" for number in range(200)])
        assert all(node is not None and node[0] == b"x" * 1000 for node in found)
        commit(session, [Delete(f"/tls/{number}") for number in range(200)])


def test_replies_that_come_in_one_record_of_tls_are_all_read_at_once(secured: Secured) -> None:
    with bundling_proxy(secured) as hosts:
        started = time.monotonic()
        patient = replace(settings(hosts, tls=Tls(secured.certificates.ca)), session_timeout=30)
        with Session(patient) as session:
            posted = [session.post([Create("/never/there")]) for _ in range(30)]
            assert [len(multi.results(5)) for multi in posted] == [1] * 30
        # A reply that waits in a decrypted record comes with the next ping, ten seconds later.
        assert time.monotonic() - started < 5


def test_a_server_whose_authority_is_not_ours_is_not_talked_to(secured: Secured) -> None:
    tls = replace(secured.certificates.tls, ca_file=secured.certificates.other_ca)
    with refused("certificate of localhost.* check the CA file"), Session(settings(secured.hosts(), tls=tls)):
        pass


def test_a_certificate_for_another_host_is_refused_unless_that_is_switched_off(secured: Secured) -> None:
    tls, hosts = secured.certificates.tls, secured.hosts("127.0.0.1")
    with refused("names the host"), Session(settings(hosts, tls=tls)):
        pass
    with Session(settings(hosts, tls=replace(tls, verify_hostname=False))) as session:
        assert session.exists("/zookeeper") is not None


def test_the_error_of_a_client_without_the_required_certificate_says_so(secured: Secured) -> None:
    tls = Tls(secured.certificates.ca)
    with refused("this client's certificate and key"), Session(settings(secured.hosts(), tls=tls)):
        pass


def test_a_port_of_the_other_kind_is_an_error_within_the_connect_timeout(secured: Secured) -> None:
    for hosts, tls in ((secured.hosts(), None), (secured.plain, secured.certificates.tls)):
        started = time.monotonic()
        wrong = replace(settings(hosts, tls=tls), connect_timeout=1)
        with pytest.raises(QueueError) as caught, Session(wrong):
            pass
        assert isinstance(caught.value, AccessDenied | Unreachable)
        assert time.monotonic() - started < 6


# ---------------------------------------------------------------------- logins
def test_a_user_of_sasl_is_let_in_and_comes_back_after_an_outage(secured: Secured) -> None:
    with Session(settings(secured.plain, sasl=ADA, acl=Acl.CREATOR)) as session:
        session.ensure_path("/ada/folder")
        secured.server.kill()
        secured.server.start()
        assert session.get("/ada/folder") is not None
        commit(session, [Delete("/ada/folder"), Delete("/ada")])


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "no password"), (b" \r\n\n", "no password"), (b"\xff\xfe", "not UTF-8")]
)
def test_a_file_without_a_password_is_an_error_and_no_empty_password(
    zookeeper_hosts: str, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    login = Login("ada", password_file=str(file))
    with pytest.raises(OSError, match=words):
        login.digest_id  # noqa: B018 - a property that reads the file
    with refused(words), Session(settings(zookeeper_hosts, digest=login, acl=Acl.CREATOR)):
        pass


def test_a_wrong_password_is_an_error_at_once(secured: Secured) -> None:
    with refused("check user and password"), Session(settings(secured.plain, sasl=Login("ada", "wrong"))):
        pass


def test_a_password_that_is_changed_under_a_session_ends_its_calls(secured: Secured) -> None:
    with Session(settings(secured.plain, sasl=ADA)) as session:
        secured.server.kill()
        secured.users(Login("ada", "changed"))
        try:
            secured.server.start()
            with refused("check user and password"):
                wait_until(lambda: session.exists("/nowhere"), 8, "the login is refused")
            with refused("check user and password"):
                commit(session, [Create("/never")])
        finally:
            secured.server.kill()
            secured.users(ADA, BOB)
            secured.server.start()


def test_a_server_that_dies_during_the_login_is_not_taken_for_a_refusal(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(settings(secured.plain, sasl=ADA)) as session:
        connection = session._client._connection  # noqa: SLF001 - it makes the logins
        login = connection._authenticate_with_sasl  # noqa: SLF001 - likewise

        def die(*_: object) -> None:
            monkeypatch.setattr(connection, "_authenticate_with_sasl", login)
            raise AuthFailedError("as kazoo reports it") from ConnectionDropped("the server is gone")

        monkeypatch.setattr(connection, "_authenticate_with_sasl", die)
        connection._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - likewise
        wait_until(lambda: session.connections == 2, 5, "it logs in again")
        assert session.exists("/") is not None


def test_no_log_contains_a_secret(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    for name in ("kazoo", "kazoo.client", "queues", "puresasl"):
        caplog.set_level(1, logger=name)
    with Session(settings(secured.hosts(), tls=secured.certificates.tls, sasl=ADA, digest=BOB)) as session:
        session.exists("/")
        secret_of_session = session._client.client_id[1]  # noqa: SLF001 - it is enough to take over the session
    with pytest.raises(AccessDenied), Session(settings(secured.plain, sasl=replace(BOB, password=SECRET))):
        pass
    assert any(record.name == "kazoo" and record.levelno >= logging.INFO for record in caplog.records)
    for secret in (SECRET, OTHER_SECRET, secret_of_session.hex(), repr(secret_of_session), "SASL("):
        assert secret not in caplog.text


# ---------------------------------------------------------------------- access rights
def with_digest(hosts: str, login: Login, acl: Acl = Acl.OPEN) -> Session:
    return Session(settings(hosts, digest=login, acl=acl))


def rights(hosts: str, path: str) -> list[str]:
    client = KazooClient(hosts, auth_data={("digest", f"ada:{SECRET}")})
    client.start(timeout=10)
    try:
        return [acl.id.id if acl.id.scheme == "world" else acl.id.scheme for acl in client.get_acls(path)[0]]
    finally:
        client.stop()
        client.close()


def test_every_node_of_a_queue_is_open_by_default(secured: Secured) -> None:
    with with_digest(secured.plain + "/open", ADA) as session:
        QueueSet(session, Layout("/q"), ["accept", "dead"], dead="dead", owner="test").put(
            "accept", "one", {}
        )
        for path in ("/open", "/open/q", f"/open{Layout('/q').record('one')}"):
            assert rights(secured.plain, path) == ["anyone"]


def test_with_creator_every_node_is_for_its_creator_alone(secured: Secured) -> None:
    with with_digest(secured.plain + "/mine", ADA, Acl.CREATOR) as session:
        queues = QueueSet(session, Layout("/q"), ["accept", "dead"], dead="dead", owner="test")
        record = queues.put("accept", "one", {})
        token = queues.layout.token("accept", "default", record.token)
        claim = queues.claim("accept", "default", record.token)
        assert claim is not None
        for path in (
            "",
            "/q",
            "/q/jobs",
            queues.layout.record("one"),
            token,
            queues.layout.lock("default", "one"),
        ):
            assert rights(secured.plain, "/mine" + path) == ["digest"]
        claim.release()


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda session: session.get("/hers"), id="get"),
        pytest.param(lambda session: session.children("/hers"), id="list"),
        pytest.param(lambda session: session.get_many(["/hers"]), id="get many"),
        pytest.param(lambda session: commit(session, [Set("/hers", b"", -1)]), id="set"),
        pytest.param(lambda session: commit(session, [Create("/hers/mine")]), id="create"),
        pytest.param(lambda session: session.ensure_path("/hers/mine"), id="folder"),
    ],
)
def test_the_error_of_a_user_who_is_not_the_creator_says_what_to_check(
    secured: Secured, act: Callable[[Session], object]
) -> None:
    with with_digest(secured.plain, ADA, Acl.CREATOR) as hers:
        hers.ensure_path("/hers")
    with (
        with_digest(secured.plain, Login("ada", "wrong")) as session,
        refused("/hers.*NoAuth.*check"),
    ):
        act(session)
    with with_digest(secured.plain, ADA) as session:
        assert session.get("/hers") is not None


# ---------------------------------------------------------------------- chroot
def test_the_folder_in_hosts_is_made_and_everything_is_below_it(secured: Secured) -> None:
    folder = f"/apps/{os.urandom(4).hex()}/ours"
    with Session(settings(secured.plain + folder)) as session, Session(settings(secured.plain)) as outside:
        session.ensure_path("/q")
        commit(session, [Create("/q/a", b"1"), Create("/q/b", b"2")])
        assert session.get_many(["/q/a", "/q/b", "/q/c"])[2] is None
        assert sorted(outside.children(folder + "/q") or ()) == ["a", "b"]
        with pytest.raises(Conflict):
            commit(session, [Create("/q/a")])


def test_a_folder_in_hosts_that_may_not_be_created_is_reported(secured: Secured) -> None:
    with with_digest(secured.plain, ADA, Acl.CREATOR) as session:
        session.ensure_path("/closed")
    with refused("/closed/below"), Session(settings(secured.plain + "/closed/below")):
        pass
