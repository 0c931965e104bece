"""The catalog of connections in ZooKeeper: one node each, changed with an entry in the audit trail."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.audit.trail import Trail
from orchestrator.connections.checks import (
    MAX_CONNECTION_BYTES,
    MAX_CONNECTIONS,
    check_name,
    checked_connection,
)
from orchestrator.model.act import Act
from orchestrator.model.errors import ConnectionNotFound, CorruptConnection, InvalidConnection
from orchestrator.model.paths import Nodes
from queues import Conflict, Create, Delete, Session, Set, commit, decode, encode
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.connections import Connection, ConnectionUnknown


class _Document(BaseModel):
    """A node."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    connector: str
    options: dict[str, str] = {}
    changed: Act | None = None


class ConnectionView(BaseModel):
    """One connection; `error` says why its node cannot be read."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    connector: str = ""
    options: dict[str, str] = {}
    changed: Act | None = None
    path: str
    error: str | None = None


class ConnectionStore:
    """All connections below one root. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._trail = Trail(session, nodes)

    def list(self) -> tuple[ConnectionView, ...]:
        """All connections by name; an unreadable one has its error."""
        views: list[ConnectionView] = []
        names = self._names()
        paths = [self._nodes.connection(name) for name in names]
        for name, found in zip(names, self._session.get_many(paths), strict=True):
            if found is None:
                continue  # removed since
            try:
                views.append(self._view(name, found[0]))
            except CorruptConnection as error:
                path = self._nodes.connection(name)
                views.append(ConnectionView(name=name, path=path, error=error.reason))
        return tuple(views)

    def get(self, name: str) -> ConnectionView:
        """One connection; raises ConnectionNotFound, CorruptConnection."""
        found = self._session.get(self._nodes.connection(check_name(name)))
        if found is None:
            raise ConnectionNotFound(name, did_you_mean(name, self._names()))
        return self._view(name, found[0])

    def find(self, name: str) -> Connection:
        """The connection for the compiler; raises ConnectionUnknown."""
        try:
            view = self.get(name)
            return checked_connection(name, view.connector, view.options)
        except (ConnectionNotFound, CorruptConnection, InvalidConnection) as error:
            raise ConnectionUnknown(str(error)) from error

    def check(self, view: ConnectionView) -> None:
        """Raise InvalidConnection unless the options fit the connector as this version knows it."""
        checked_connection(view.name, view.connector, view.options)

    def set(self, name: str, connector: str, options: Mapping[str, str]) -> ConnectionView:
        """Store a connection, or replace the one of its name; raises InvalidConnection."""
        connection = checked_connection(name, connector, options)
        path, act = self._nodes.connection(name), self._trail.act("set")
        document = _Document(connector=connection.connector, options=dict(connection.options), changed=act)
        data = encode(document.model_dump(mode="json"))
        if len(data) > MAX_CONNECTION_BYTES:
            raise InvalidConnection(
                f"connection {name!r} has {len(data):,} bytes, the limit is {MAX_CONNECTION_BYTES:,}"
            )
        self._session.ensure_path(self._nodes.connections)
        after = {"connector": connection.connector, "options": dict(connection.options)}
        while True:
            known = self._session.get(path)
            if known is None:
                self._check_capacity()
            event = self._trail.entry(act, "connection", name, before=_facts(known and known[0]), after=after)
            change = Create(path, data) if known is None else Set(path, data, known[1].version)
            try:
                commit(self._session, [change, event])
            except Conflict:
                continue  # another client was faster, or the reply was lost: replace it
            return self._view(name, data)

    def remove(self, name: str) -> None:
        """Remove a connection; plans of jobs that used it stay. Raises ConnectionNotFound."""
        path, act = self._nodes.connection(check_name(name)), self._trail.act("remove")
        while (known := self._session.get(path)) is not None:
            event = self._trail.entry(act, "connection", name, before=_facts(known[0]))
            try:
                commit(self._session, [Delete(path, known[1].version), event])
            except Conflict as conflict:
                if not conflict.ambiguous:
                    continue
            return
        raise ConnectionNotFound(name, did_you_mean(name, self._names()))

    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(self._session.children(self._nodes.connections) or ()))

    def _check_capacity(self) -> None:
        if len(self._names()) >= MAX_CONNECTIONS:
            raise InvalidConnection(
                f"there are {MAX_CONNECTIONS:,} connections, which is the limit; remove one that is not used"
            )

    def _view(self, name: str, data: bytes) -> ConnectionView:
        path = self._nodes.connection(name)
        if len(data) > MAX_CONNECTION_BYTES:
            raise CorruptConnection(name, path, f"it has more than {MAX_CONNECTION_BYTES:,} bytes")
        try:
            found = _Document.model_validate(decode(data))
        except ValidationError as error:
            raise CorruptConnection(name, path, f"{error.error_count()} fields are wrong") from error
        except ValueError as error:
            raise CorruptConnection(name, path, str(error)) from error
        return ConnectionView(name=name, path=path, **found.model_dump())


def _facts(data: bytes | None) -> dict[str, object]:
    """The connector and the options of a node, as far as they can be read."""
    if data is None:
        return {}
    try:
        found = _Document.model_validate(decode(data))
    except ValueError:
        return {}
    return {"connector": found.connector, "options": found.options}
