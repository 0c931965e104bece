"""Nodes that others than our login may read or change, where `zookeeper_acl` says that none may."""

import base64
import hashlib
from collections.abc import Iterator, Sequence

from orchestrator.cautions import Exposure, cautions
from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.settings import Settings
from queues.access_walk import access_below
from queues.operations import ALL
from queues.queue import QueueSet
from queues.session import Acl, Grant, Login, Rights, Session, SessionSettings
from queues.session.rights import OWN
from spark_runner.attempt import is_made_by_driver

_NAMED = 10  # paths in the words of one finding
_DIGESTS = ("sha1", "sha256", "sha384", "sha512", "sha3_256", "sha3_512")  # a server can be told which


def look_at_rights(survey: Survey) -> Iterator[Finding]:
    """Nodes that are open to everybody, and those that are closed to our login, by their paths."""
    return look(survey.session, survey.layout.root)


def look(session: Session, root: str) -> Iterator[Finding]:
    """The same, where there are nodes that cannot be read; raises what reads raise."""
    if session.settings.acl is not Acl.CREATOR:
        return
    ours = Ours(session.settings)
    is_open, foreign = list[str](), list[str]()
    for path, rights in access_below(session, root):
        if is_made_by_driver(path):
            continue
        if isinstance(rights, Rights) and rights.is_open:
            is_open.append(path)
        elif rights is not None and not (isinstance(rights, Rights) and ours.owns(rights)):
            foreign.append(path)
    if is_open:
        what = f"everybody who reaches ZooKeeper may touch {_named(is_open)}: zookeeper_acl was `open`"
        remedy = "--fix gives them to this login: first let all programs use it"
        yield Finding.of(Kind.OPEN_NODES, root, what, remedy, fixable=True)
    if foreign:
        what = f"another login, or one with an old password, owns {_named(foreign)}"
        remedy = "as that login give them to this one, in zkCli: `addauth digest USER:PASSWORD`, `setAcl -R`"
        yield Finding.of(Kind.FOREIGN_RIGHTS, root, what, remedy)


def mend(queue_set: QueueSet) -> None:
    """Give the nodes that are open to this login; what others have by name stays theirs."""
    if queue_set.session.settings.acl is Acl.CREATOR:
        _close(queue_set.session, queue_set.layout.root)


def _close(session: Session, root: str) -> None:
    for _ in access_below(session, root, Ours(session.settings).closing):
        pass


def look_at_settings(settings: Settings) -> Iterator[Finding]:
    """Secrets of this host's settings that others can read; the path is that of the file, or the setting."""
    kinds = {Exposure.READABLE_FILE: Kind.READABLE_SECRET, Exposure.NO_TLS: Kind.UNENCRYPTED_LOGIN}
    for caution in cautions(settings):
        yield Finding.of(kinds[caution.exposure], caution.place, caution.what, caution.remedy)


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

    def owns(self, rights: Rights) -> bool:
        """Whether the session may do everything with a node."""
        return any(
            grant.perms == ALL
            and ((grant.scheme, grant.id) in self._ids or (self._certified and grant.scheme == "x509"))
            for grant in rights.grants
        )

    def closing(self, rights: Rights) -> Sequence[Grant] | None:
        """What an open node is to have: all for us, for others what they have by name; else None."""
        if not rights.is_open:
            return None
        named = [grant for grant in rights.grants if not grant.is_open]
        return named if self.owns(rights) else [OWN, *named]


def _digests(login: Login) -> Iterator[str]:
    text = f"{login.user}:{login.secret()}".encode()
    for name in _DIGESTS:
        yield f"{login.user}:{base64.b64encode(hashlib.new(name, text).digest()).decode()}"
