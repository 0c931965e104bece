"""Nodes that others than our login may read or change, where `zookeeper_acl` says that none may."""

import base64
import hashlib
from collections.abc import Collection, Iterator, Sequence

from orchestrator.cautions import cautions
from orchestrator.doctor.drivers import open_attempts
from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.settings import Settings
from queues.access_walk import access_below
from queues.names import Layout
from queues.operations import ALL
from queues.queue import QueueSet
from queues.session import Acl, Grant, Login, Rights, Session, SessionSettings
from queues.session.rights import OWN
from spark_runner.attempt import is_attempt, is_made_by_driver

_NAMED = 10  # paths in the words of one finding
_DIGESTS = ("sha1", "sha256", "sha384", "sha512", "sha3_256", "sha3_512")  # a server can be told which


def look_at_rights(survey: Survey) -> Iterator[Finding]:
    """Nodes that are open to everybody, and those that are closed to our login, by their paths."""
    return look(survey.session, survey.layout.root, _needed(survey))


def look(session: Session, root: str, needed: Collection[str] = ()) -> Iterator[Finding]:
    """The same, where there are nodes that cannot be read; raises what reads raise.

    `needed`: the paths that drivers without a login of their own have to reach.
    """
    if session.settings.acl is not Acl.CREATOR:
        return
    is_open, of_drivers, foreign, shared = _sorted(session, root, needed)
    if is_open:
        what = f"everybody who reaches ZooKeeper may touch {_named(is_open)}: zookeeper_acl was `open`"
        remedy = "--fix gives them to this login: first let all programs use it"
        yield Finding.of(Kind.OPEN_NODES, root, what, remedy, fixable=True)
    if of_drivers:
        what = f"drivers that were submitted without a login need {_named(of_drivers)}, open to everybody"
        yield Finding.of(Kind.OPEN_NODES, of_drivers[0], what, "once they have ended, --fix closes these too")
    if foreign:
        what = f"another login, or one with an old password, owns {_named(foreign)}"
        remedy = "as that login give them to this one, in zkCli: `addauth digest USER:PASSWORD`, `setAcl -R`"
        yield Finding.of(Kind.FOREIGN_RIGHTS, root, what, remedy)
    if shared:
        logins = sorted({login for found in shared.values() for login in found})
        more = f" and {len(logins) - _NAMED:,} more" if len(logins) > _NAMED else ""
        what = f"{', '.join(logins[:_NAMED])}{more} have rights, too, on {_named(list(shared))}"
        remedy = "take those away that you do not know, in zkCli: `getAcl`, then `setAcl`"
        yield Finding.of(Kind.SHARED_RIGHTS, root, what, remedy)


def _sorted(
    session: Session, root: str, needed: Collection[str]
) -> tuple[list[str], list[str], list[str], dict[str, list[str]]]:
    """The open nodes, those of them that drivers need, foreign ones, and those with other logins."""
    ours, layout = Ours(session.settings), Layout(root)
    is_open, of_drivers, foreign, shared = list[str](), list[str](), list[str](), dict[str, list[str]]()
    for path, rights in access_below(session, root):
        if rights is None or is_made_by_driver(path, layout.buckets):
            continue
        if not isinstance(rights, Rights) or not (rights.is_open or ours.owns(rights)):
            foreign.append(path)
            continue
        if rights.is_open:
            (of_drivers if path in needed else is_open).append(path)
        if not _is_for_a_driver(path, layout) and (others := list(ours.others(rights))):
            shared[path] = others
    return is_open, of_drivers, foreign, shared


def _is_for_a_driver(path: str, layout: Layout) -> bool:
    """Whether the login of an attempt has rights on such a node."""
    return is_attempt(path, layout.buckets) or path.startswith(f"{layout.root}/stops/")


def mend(queue_set: QueueSet) -> None:
    """Give the nodes that are open to this login; what others have by name stays theirs.

    What drivers without a login need stays open until they have ended: else they end without an outcome.
    """
    session = queue_set.session
    if session.settings.acl is not Acl.CREATOR:
        return
    needed, ours = _needed(Survey.take(queue_set)), Ours(session.settings)

    def closing(path: str, rights: Rights) -> Sequence[Grant] | None:
        return None if {path, path.rpartition("/")[0]} & needed else ours.closing(path, rights)

    for _ in access_below(session, queue_set.layout.root, closing):
        pass


def _needed(survey: Survey) -> set[str]:
    """The attempts of drivers that have no login, and the nodes by which they are asked to stop."""
    return {
        path
        for job, attempt in open_attempts(survey)
        if not attempt.login
        for path in (attempt.path, survey.layout.stop(job.place.pool, job.record.id))
    }


def look_at_settings(settings: Settings) -> Iterator[Finding]:
    """Unsafe settings of this host; the path is that of the file, or the setting."""
    for caution in cautions(settings):
        yield Finding.of(Kind(caution.exposure.value), caution.place, caution.what, caution.remedy)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"{len(paths):,} nodes ({', '.join(paths[:_NAMED])}{more})"


class Ours:
    """As whom ZooKeeper knows a session, as far as its settings say."""

    def __init__(self, settings: SessionSettings) -> None:
        self._ids = set[tuple[str, str]]()
        if settings.sasl is not None:
            self._ids.add(("sasl", settings.sasl.user))
        if settings.digest is not None:
            self._ids |= {("digest", each) for each in _digests(settings.digest)}
        self._certified = settings.tls is not None and bool(settings.tls.certificate_file)
        # People of a team have logins of their own, besides the digest that they share.
        self._is_team = settings.digest is not None and (settings.sasl is not None or self._certified)

    def owns(self, rights: Rights) -> bool:
        """Whether the session may do everything with a node."""
        return any(grant.perms == ALL and self._is(grant) for grant in rights.grants)

    def others(self, rights: Rights) -> Iterator[str]:
        """Logins that have rights by name and are no members of the team that shares the tree.

        While it was open, whoever reached ZooKeeper could give them to himself.
        """
        for grant in rights.grants:
            is_member = self._is_team and grant.scheme != "digest"
            if not (grant.is_open or is_member or self._is(grant)):
                yield f"{grant.scheme}:{grant.id}"

    def _is(self, grant: Grant) -> bool:
        return (grant.scheme, grant.id) in self._ids or (self._certified and grant.scheme == "x509")

    def closing(self, _path: str, rights: Rights) -> Sequence[Grant] | None:
        """What an open node is to have: all for us, for others what they have by name; else None."""
        if not rights.is_open:
            return None
        named = [grant for grant in rights.grants if not grant.is_open]
        return named if self.owns(rights) else [OWN, *named]


def _digests(login: Login) -> Iterator[str]:
    text = f"{login.user}:{login.secret()}".encode()
    for name in _DIGESTS:
        yield f"{login.user}:{base64.b64encode(hashlib.new(name, text).digest()).decode()}"
