"""Nodes that stayed open when `zookeeper_acl` became `creator`: reported by path, closed by --fix."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Permissions, make_acl, make_digest_acl

from orchestrator.doctor.doctor import Doctor
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.rights import OwnIdentities
from orchestrator.model.states import Queue
from queues.model.names import Layout
from queues.queue_set import QueueSet
from queues.session import Acl, Grant, Login, Rights, Session, SessionSettings
from queues.session.access_walk import access_below
from tests.servers.zookeeper import remove_tree, tree, zookeeper_client

MINE = Login("orchestrator", "the-password")
RUN = make_digest_acl("run-0108abfa", "of-one-run", read=True, write=True)
OURS = make_digest_acl(MINE.user, MINE.password, all=True)


@pytest.fixture
def root(zookeeper_hosts: str) -> Iterator[str]:
    """A root that its owner removes at the end."""
    made = f"/test-{uuid.uuid4()}"
    yield made
    with as_login(zookeeper_hosts) as client:
        remove_tree(client, made)


@contextmanager
def as_login(hosts: str, login: Login = MINE) -> Iterator[KazooClient]:
    with zookeeper_client(hosts) as client:
        client.add_auth("digest", f"{login.user}:{login.password}")
        yield client


@contextmanager
def queue_set(hosts: str, root: str, acl: Acl, login: Login = MINE) -> Iterator[QueueSet]:
    with Session(SessionSettings(hosts, digest=login, acl=acl)) as session:
        yield QueueSet(session, Layout(root), list(Queue), dead=Queue.DEAD, owner="doctor")


def found(doctor: Doctor) -> dict[FindingKind, Finding]:
    kinds = {FindingKind.OPEN_NODES, FindingKind.FOREIGN_RIGHTS, FindingKind.SHARED_RIGHTS}
    return {finding.kind: finding for finding in doctor.check() if finding.kind in kinds}


def test_open_nodes_are_reported_and_closed(zookeeper_hosts: str, root: str) -> None:
    with queue_set(zookeeper_hosts, root, Acl.OPEN) as before:
        before.put(Queue.ACCEPT, "job", {})
        assert found(Doctor(before)) == {}, "open is what was asked for"
    with as_login(zookeeper_hosts) as client, zookeeper_client(zookeeper_hosts) as stranger:
        count = len(tree(client, root))
        assert count > 10
        # Rights that were granted to a run by name stay.
        client.create(f"{root}/attempt", b"", acl=[*OPEN_ACL_UNSAFE, RUN])
        client.create(f"{root}/narrow", b"", acl=[OURS, RUN])
        stranger.create(f"{root}/planted", b"", ephemeral=True)
        with queue_set(zookeeper_hosts, root, Acl.CREATOR) as queues:
            doctor = Doctor(queues)
            finding = found(doctor)[FindingKind.OPEN_NODES]
            assert (finding.path, finding.fixable) == (root, True)
            assert f"{count + 2:,} nodes ({root}, " in finding.what
            assert f"and {count + 2 - 10:,} more)" in finding.what
            assert FindingKind.FOREIGN_RIGHTS not in found(doctor)
            repaired = [each for each in doctor.fix(doctor.check()) if each.kind is FindingKind.OPEN_NODES]
            assert [each.fixed for each in repaired] == [True]
            assert set(found(doctor)) == {FindingKind.SHARED_RIGHTS}, "of the run: it is unknown here"
            for path in tree(client, root):
                with pytest.raises(NoAuthError):
                    stranger.get(path)
            expected = {RUN, OURS}
            assert set(client.get_acls(f"{root}/attempt")[0]) == expected
            assert set(client.get_acls(f"{root}/narrow")[0]) == expected
            assert client.get_acls(f"{root}/planted")[0] == [OURS]


def test_a_node_that_everybody_may_only_read_is_open_too(zookeeper_hosts: str, root: str) -> None:
    with queue_set(zookeeper_hosts, root, Acl.CREATOR) as queues, as_login(zookeeper_hosts) as client:
        queues.put(Queue.ACCEPT, "job", {})
        client.create(f"{root}/seen", b"", acl=[OURS, make_acl("world", "anyone", read=True)])
        assert "1 nodes" in found(Doctor(queues))[FindingKind.OPEN_NODES].what
        doctor = Doctor(queues)
        doctor.fix(doctor.check())
        assert client.get_acls(f"{root}/seen")[0] == [OURS]


def test_a_job_and_a_pool_that_are_named_like_an_attempt_hide_no_open_node(
    zookeeper_hosts: str, root: str
) -> None:
    with queue_set(zookeeper_hosts, root, Acl.CREATOR) as queues, as_login(zookeeper_hosts) as client:
        queues.put(Queue.ACCEPT, "attempt-7", {}, pool="attempt-7")
        open_nodes = [
            f"{queues.layout.record('attempt-7')}/definition",
            f"{root}/queues/accept/attempt-7/planted",
        ]
        for path in open_nodes:
            client.create(path, b"")
        finding = found(Doctor(queues))[FindingKind.OPEN_NODES]
        assert [path for path in open_nodes if path not in finding.what] == []


def test_rights_by_name_from_the_time_of_an_open_tree_are_reported(zookeeper_hosts: str, root: str) -> None:
    mallory = make_digest_acl("mallory", "any", all=True)
    with queue_set(zookeeper_hosts, root, Acl.OPEN) as before, zookeeper_client(zookeeper_hosts) as stranger:
        before.put(Queue.ACCEPT, "job", {})
        record = before.layout.record("job")
        stranger.set_acls(record, [*OPEN_ACL_UNSAFE, mallory])
        stranger.set_acls(f"{root}/queues", [OURS, mallory])
        stranger.create(f"{record}/attempt-1-key", b"", acl=[OURS, RUN])
        stranger.create(f"{root}/stops/default/job", b"", acl=[OURS, RUN], makepath=True)
    with queue_set(zookeeper_hosts, root, Acl.CREATOR) as queues, as_login(zookeeper_hosts) as client:
        doctor = Doctor(queues)
        for _ in range(2):
            finding = found(doctor)[FindingKind.SHARED_RIGHTS]
            assert f"digest:{mallory.id.id} have rights, too, on 2 nodes" in finding.what
            assert f"{root}/queues" in finding.what
            assert record in finding.what
            doctor.fix(doctor.check())
        for path in (record, f"{root}/queues"):
            client.set_acls(path, [OURS])
        assert FindingKind.SHARED_RIGHTS not in found(doctor)


def test_nodes_of_an_old_password_are_reported_and_left(zookeeper_hosts: str, root: str) -> None:
    old = Login(MINE.user, "the-old-password")
    with (
        queue_set(zookeeper_hosts, root, Acl.CREATOR) as queues,
        as_login(zookeeper_hosts) as client,
        as_login(zookeeper_hosts, old) as former,
    ):
        queues.put(Queue.ACCEPT, "job", {})
        theirs = make_digest_acl(old.user, old.password, all=True)
        client.create(f"{root}/readable", b"", acl=[theirs, ACL(Permissions.READ, OURS.id)])
        client.create(f"{root}/closed", b"", acl=[theirs])
        doctor = Doctor(queues)
        finding = found(doctor)[FindingKind.FOREIGN_RIGHTS]
        assert not finding.fixable
        assert "2 nodes" in finding.what
        assert f"{root}/closed" in finding.what
        assert f"{root}/readable" in finding.what
        former.set_acls(f"{root}/closed", [OURS])
        former.set_acls(f"{root}/readable", [OURS])
        assert found(doctor) == {}


def test_a_root_that_is_closed_to_this_login_is_a_finding_and_no_error(
    zookeeper_hosts: str, root: str
) -> None:
    with queue_set(zookeeper_hosts, root, Acl.CREATOR) as queues:
        queues.put(Queue.ACCEPT, "job", {})
    other = Login(MINE.user, "a-new-password")
    with queue_set(zookeeper_hosts, root, Acl.CREATOR, other) as queues:
        (finding,) = Doctor(queues).check()
        assert (finding.kind, finding.path) == (FindingKind.FOREIGN_RIGHTS, root)


def test_a_node_that_is_created_during_the_walk_below_a_closed_node_is_closed(
    zookeeper_hosts: str, root: str
) -> None:
    """Another user creates a node after the check of a folder's rights and before its listing."""
    with (
        queue_set(zookeeper_hosts, root, Acl.OPEN) as queues,
        zookeeper_client(zookeeper_hosts) as stranger,
        as_login(zookeeper_hosts) as client,
    ):
        client.create(root, b"")
        session = queues.session
        made = list[str]()

        def closing(path: str, rights: Rights) -> Sequence[Grant] | None:
            made.append(stranger.create(f"{root}/late", b"")) if not made else None
            return OwnIdentities(session.settings).closing(path, rights)

        walked = [path for path, _ in access_below(session, root, closing)]
        assert walked == [root, f"{root}/late"]
        assert client.get_acls(f"{root}/late")[0] == [OURS]
        with pytest.raises(NoAuthError):
            stranger.create(f"{root}/later", b"")


def test_ten_thousands_of_nodes_are_closed_in_a_walk(zookeeper_hosts: str, root: str) -> None:
    count = 10_000
    with as_login(zookeeper_hosts) as client, queue_set(zookeeper_hosts, root, Acl.CREATOR) as queues:
        client.create(root, b"")
        for reply in [client.create_async(f"{root}/{number:05}", b"") for number in range(count)]:
            reply.get(60)
        for _ in access_below(queues.session, root, OwnIdentities(queues.session.settings).closing):
            pass
        rights = [seen for _, seen in access_below(queues.session, root)]
        assert len(rights) == count + 1
        assert not any(seen.is_open for seen in rights)  # type: ignore[union-attr]  # all are there
