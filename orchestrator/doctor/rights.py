"""Checks of access rights: nodes that other logins can use although `zookeeper_acl` is `creator`."""

import base64
import hashlib
from collections.abc import Collection, Iterator, Sequence

from orchestrator.config.cautions import cautions
from orchestrator.config.settings import Settings
from orchestrator.doctor.drivers import open_attempts
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.snapshot import ClusterSnapshot
from queues import (
    CREATOR_ALL,
    PERM_ALL,
    Acl,
    Grant,
    Layout,
    Login,
    QueueSet,
    Rights,
    Session,
    SessionSettings,
    access_below,
)
from spark_runner.protocol.adjustment_node import adjustment_path, is_adjustment
from spark_runner.protocol.attempt import is_attempt, is_made_by_driver

_NAMED = 10  # paths that one finding lists
_DIGESTS = (
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "sha3_256",
    "sha3_512",
)  # the digest of a server is configurable


def check_rights(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Nodes that are open to every client, and nodes that are closed to this login, by their paths."""
    return check_access(snapshot.session, snapshot.layout.root, _needed(snapshot))


def check_access(session: Session, root: str, needed: Collection[str] = ()) -> Iterator[Finding]:
    """The same without a snapshot, for trees with nodes that cannot be read; raises the errors of reads.

    `needed`: the paths that drivers without their own login have to reach.
    """
    if session.settings.acl is not Acl.CREATOR:
        return
    is_open, of_drivers, foreign, shared = _sorted(session, root, needed)
    if is_open:
        what = f"every client of ZooKeeper may change {_named(is_open)}: zookeeper_acl was `open`"
        remedy = "--fix restricts them to this login: let all programs use it first"
        yield Finding.of(FindingKind.OPEN_NODES, root, what, remedy, fixable=True)
    if of_drivers:
        what = f"drivers that were submitted without a login need {_named(of_drivers)}, open to everybody"
        remedy = "once these drivers have ended, --fix restricts these nodes too"
        yield Finding.of(FindingKind.OPEN_NODES, of_drivers[0], what, remedy)
    if foreign:
        what = f"another login, or one with an old password, owns {_named(foreign)}"
        remedy = "as that login, grant them to this one in zkCli: `addauth digest USER:PASSWORD`, `setAcl -R`"
        yield Finding.of(FindingKind.FOREIGN_RIGHTS, root, what, remedy)
    if shared:
        logins = sorted({login for found in shared.values() for login in found})
        more = f" and {len(logins) - _NAMED:,} more" if len(logins) > _NAMED else ""
        what = f"{', '.join(logins[:_NAMED])}{more} have rights, too, on {_named(list(shared))}"
        remedy = "revoke unknown logins in zkCli: `getAcl`, then `setAcl`"
        yield Finding.of(FindingKind.SHARED_RIGHTS, root, what, remedy)


def _sorted(
    session: Session, root: str, needed: Collection[str]
) -> tuple[list[str], list[str], list[str], dict[str, list[str]]]:
    """Open nodes, open nodes that drivers need, foreign nodes, and nodes with other logins."""
    own, layout = OwnIdentities(session.settings), Layout(root)
    is_open, of_drivers, foreign, shared = list[str](), list[str](), list[str](), dict[str, list[str]]()
    for path, rights in access_below(session, root):
        if rights is None or is_made_by_driver(path, layout.buckets):
            continue
        if not isinstance(rights, Rights) or not (rights.is_open or own.owns(rights)):
            foreign.append(path)
            continue
        if rights.is_open:
            (of_drivers if path in needed else is_open).append(path)
        if not _is_for_a_driver(path, layout) and (others := list(own.others(rights))):
            shared[path] = others
    return is_open, of_drivers, foreign, shared


def _is_for_a_driver(path: str, layout: Layout) -> bool:
    """Whether the login of an attempt has rights on such a node."""
    is_limits = is_adjustment(path, layout.buckets)
    return is_limits or is_attempt(path, layout.buckets) or path.startswith(f"{layout.root}/stops/")


def fix(queue_set: QueueSet) -> None:
    """Restrict open nodes to this login; rights that other logins have by name stay.

    Nodes that drivers without a login need stay open until these drivers have ended: otherwise they would end
    without an outcome.
    """
    session = queue_set.session
    if session.settings.acl is not Acl.CREATOR:
        return
    needed, own = _needed(ClusterSnapshot.take(queue_set)), OwnIdentities(session.settings)

    def closing(path: str, rights: Rights) -> Sequence[Grant] | None:
        return None if {path, path.rpartition("/")[0]} & needed else own.closing(path, rights)

    for _ in access_below(session, queue_set.layout.root, closing):
        pass


def _needed(snapshot: ClusterSnapshot) -> set[str]:
    """The attempts of drivers that have no login, and the nodes from which these drivers read."""
    return {
        path
        for job, attempt in open_attempts(snapshot)
        if not attempt.login
        for path in (
            attempt.path,
            adjustment_path(attempt.path),
            snapshot.layout.stop(job.place.pool, job.record.id),
        )
    }


def check_settings(settings: Settings) -> Iterator[Finding]:
    """Unsafe settings of this host; the path of a finding is that of the file, or the name of the setting."""
    for caution in cautions(settings):
        yield Finding.of(FindingKind(caution.exposure.value), caution.place, caution.what, caution.remedy)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"{len(paths):,} nodes ({', '.join(paths[:_NAMED])}{more})"


class OwnIdentities:
    """The identities under which ZooKeeper sees a session, as far as its settings name them."""

    def __init__(self, settings: SessionSettings) -> None:
        self._ids = set[tuple[str, str]]()
        if settings.sasl is not None:
            self._ids.add(("sasl", settings.sasl.user))
        if settings.digest is not None:
            self._ids |= {("digest", each) for each in _digests(settings.digest)}
        self._certified = settings.tls is not None and bool(settings.tls.certificate_file)
        # The members of a team have their own logins besides the shared digest.
        self._is_team = settings.digest is not None and (settings.sasl is not None or self._certified)

    def owns(self, rights: Rights) -> bool:
        """Whether the session has all rights on a node."""
        return any(grant.perms == PERM_ALL and self._is(grant) for grant in rights.grants)

    def others(self, rights: Rights) -> Iterator[str]:
        """Logins that have rights by name and are not members of the team that shares the tree.

        While the tree was open, every client of ZooKeeper could grant itself such rights.
        """
        for grant in rights.grants:
            is_member = self._is_team and grant.scheme != "digest"
            if not (grant.is_open or is_member or self._is(grant)):
                yield f"{grant.scheme}:{grant.id}"

    def _is(self, grant: Grant) -> bool:
        return (grant.scheme, grant.id) in self._ids or (self._certified and grant.scheme == "x509")

    def closing(self, _path: str, rights: Rights) -> Sequence[Grant] | None:
        """New rights of an open node: all for this login, and those of others by name; None to leave it."""
        if not rights.is_open:
            return None
        named = [grant for grant in rights.grants if not grant.is_open]
        return named if self.owns(rights) else [CREATOR_ALL, *named]


def _digests(login: Login) -> Iterator[str]:
    text = f"{login.user}:{login.secret()}".encode()
    for name in _DIGESTS:
        yield f"{login.user}:{base64.b64encode(hashlib.new(name, text).digest()).decode()}"
