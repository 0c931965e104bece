"""The identities of a session, as the server itself reports them, for every kind of login."""

from typing import Any

import pytest

from queues.session import Acl, Identity, Login, Session, SessionSettings
from queues.session.rights import WhoAmI, best_of
from tests.servers.secured import ADA, Secured

TEAM = Login("team", "the-secret-of-the-team")


def identity(hosts: str, **login: Any) -> Identity:
    with Session(SessionSettings(hosts, session_timeout=4, **login)) as session:
        return session.whoami()


def test_the_server_says_who_a_session_is(secured: Secured) -> None:
    assert str(identity(secured.plain, sasl=ADA)) == "sasl:ada"
    assert str(identity(secured.plain, digest=TEAM)) == "digest:team"
    assert str(identity(secured.plain)) == "ip:127.0.0.1"
    assert str(identity(secured.hosts(), tls=secured.certificates.tls)) == "x509:CN=client"


def test_of_several_ids_the_one_that_the_server_has_verified_is_recorded(secured: Secured) -> None:
    assert str(identity(secured.plain, sasl=ADA, digest=TEAM)) == "sasl:ada"
    assert str(identity(secured.hosts(), tls=secured.certificates.tls, digest=TEAM)) == "x509:CN=client"
    assert (
        best_of([Identity("ip", "::1"), Identity("kerberos", "x"), Identity("digest", "y")]).scheme
        == "digest"
    )
    assert best_of([]).scheme == "ip"


def test_it_is_asked_once_per_connection(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[WhoAmI] = []
    serialize = WhoAmI.serialize

    def counted(request: WhoAmI) -> bytes:
        asked.append(request)
        return serialize(request)

    monkeypatch.setattr(WhoAmI, "serialize", counted)
    with Session(SessionSettings(secured.plain, session_timeout=4, sasl=ADA)) as session:
        assert not asked
        assert session.whoami() is session.whoami()
        assert len(asked) == 1
        secured.server.kill()
        secured.server.start()
        assert session.exists("/") is not None
        assert str(session.whoami()) == "sasl:ada"
        assert len(asked) == 2


def test_for_a_server_that_cannot_be_asked_the_settings_answer_and_say_so(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WhoAmI, "type", 1070)  # unknown to this server, as 107 is to servers before 3.7
    words = "not confirmed by the server"
    assert str(identity(secured.plain, sasl=ADA, digest=TEAM)) == f"sasl:ada ({words})"
    assert str(identity(secured.plain, digest=TEAM, acl=Acl.CREATOR)) == f"digest:team ({words})"
    assert words in str(identity(secured.hosts(), tls=secured.certificates.tls))
    assert words in str(identity(secured.plain))


def test_a_name_is_bounded_and_has_no_control_characters() -> None:
    assert str(Identity("digest", "a\x1b[2Jb\u202e")) == "digest:a\ufffd[2Jb\ufffd"
    assert len(str(Identity("x509", "CN=" + "x" * 5000))) == 200
