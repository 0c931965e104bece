"""The limits in ZooKeeper: operators change them, workers follow them while they run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loguru import logger
from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.audit.trail import Trail
from orchestrator.loop import Loop
from orchestrator.model.act import Word
from orchestrator.model.errors import ConfigUnreadable, SettingsError
from orchestrator.model.fields import explain
from orchestrator.model.limits import Limits
from orchestrator.model.paths import Nodes
from queues import Conflict, Session, Set, Stat, commit, decode, encode

_LOOK_AGAIN_SECONDS = 15.0  # how long a lost watch can hide a change
_STOP_SECONDS = 0.5  # a longer step is a wait for ZooKeeper: nothing depends on it
_KEPT_CHANGES = 20  # about 300 bytes each, so that zkCli can show the node
_SOURCE = "config"


class Change(BaseModel):
    """One change of limits; None in `before` and `after` = not set."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int  # of the node after this change
    at: Word
    by: Word  # the login as ZooKeeper reports it
    host: Word = ""  # as the client reports it
    pool: Word = ""  # empty: the limits of all workers
    before: dict[str, Any]
    after: dict[str, Any]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    values: dict[str, Any] = {}
    changed: tuple[Change, ...] = ()  # the last changes, oldest first


@dataclass(frozen=True, slots=True)
class StoredConfig:
    """The content of the node: `values` are the limits that it sets, `limits` all limits in force."""

    limits: Limits
    values: Mapping[str, Any]
    version: int  # of the node
    changes: tuple[Change, ...]  # oldest first


class ClusterConfig:
    """The limits of one root. `defaults`, the worker's settings, apply where the node sets no limit."""

    def __init__(self, session: Session, nodes: Nodes, defaults: Limits | None = None) -> None:
        self._session = session
        self._trail = Trail(session, nodes)
        self._path = nodes.config
        self._defaults = Limits() if defaults is None else defaults
        self._limits = self._defaults
        self._unreadable: tuple[int, int] | None = (
            None  # of the node when it was last unreadable: time of change, version
        )
        self._wakes: list[Callable[[], None]] = []
        self._loop = Loop("config", self._look, first=_LOOK_AGAIN_SECONDS)
        self.trouble = self._loop.trouble

    # ------------------------------------------------------------------ follow
    def start(self) -> None:
        """Read the limits and follow their changes; raises what a read raises."""
        self._look()
        self._session.on_change(self._loop.wake)  # watches end with the connection
        self._loop.start()

    def stop(self) -> None:
        """Stop following."""
        self._loop.stop(_STOP_SECONDS)

    def on_change(self, wake: Callable[[], None]) -> None:
        """Call `wake` when the limits have changed; it may only set an event."""
        self._wakes.append(wake)

    @property
    def limits(self) -> Limits:
        """The last valid limits, without a request; the defaults before `start`."""
        return self._limits

    def _look(self) -> float:
        found = self._session.get(self._path, self._loop.wake)
        try:
            stored = self._decode(found)
        except ConfigUnreadable as error:
            seen = (found[1].modified, found[1].version) if found else None
            if seen != self._unreadable:
                logger.warning(
                    "{}; until it is repaired, the last valid limits apply: {}", error, self._limits
                )
            self._unreadable = seen
            return _LOOK_AGAIN_SECONDS
        self._unreadable = None
        if stored.limits != self._limits:
            logger.info("limits of version {} of {}: {}", stored.version, self._path, stored.limits)
            self._limits = stored.limits
            for wake in self._wakes:
                wake()
        return _LOOK_AGAIN_SECONDS

    # ------------------------------------------------------------------ read, change
    def read(self) -> StoredConfig:
        """The node as it is now; raises ConfigUnreadable."""
        return self._decode(self._session.get(self._path))

    def change(self, **changes: Any) -> Limits:
        """Set limits for all workers; None removes a limit, so that each worker uses its own settings.

        Raises SettingsError for an invalid name or value, and ConfigUnreadable; then nothing is changed.
        """
        check_limits(changes)
        self._session.ensure_path(self._path)
        while True:
            stored = self.read()
            merged = {**stored.values, **changes}
            values = _checked({name: value for name, value in merged.items() if value is not None})
            if values == stored.values:
                return stored.limits
            names = [name for name in Limits.model_fields if values.get(name) != stored.values.get(name)]
            act = self._trail.act("set")
            before = {name: stored.values.get(name) for name in names}
            after = {name: values.get(name) for name in names}
            change = Change(
                version=stored.version + 1, at=act.at, by=act.by, host=act.host, before=before, after=after
            )
            kept = (*stored.changes, change)[-_KEPT_CHANGES:]
            document = _Document(values=values, changed=kept)
            try:
                data = encode(document.model_dump(exclude={"changed": {"__all__": {"pool"}}}))
                entry = self._trail.entry(act, "config", "config", before=before, after=after)
                commit(self._session, [Set(self._path, data, stored.version), entry])
            except Conflict:
                continue  # another client was faster, or the reply was lost: merge again
            return self._with(values)

    def _decode(self, found: tuple[bytes, Stat] | None) -> StoredConfig:
        if found is None:
            return StoredConfig(self._defaults, {}, -1, ())
        data, stat = found
        try:
            document = _Document.model_validate(decode(data) if data else {})
            values = _checked(document.values)
        except (ValueError, SettingsError) as error:
            reason = explain(error, _Document, _SOURCE) if isinstance(error, ValidationError) else str(error)
            raise ConfigUnreadable(self._path, stat.version, reason.replace("\n", "; ")) from error
        return StoredConfig(self._with(values), values, stat.version, document.changed)

    def _with(self, values: Mapping[str, Any]) -> Limits:
        return self._defaults.model_copy(update=dict(values))


def check_limits(changes: Mapping[str, Any]) -> None:
    """Raise SettingsError unless these limits can be set; None = to be removed."""
    # The name of a removed limit is checked, too, so each gets a valid value.
    some = Limits().model_dump()
    _checked({name: some.get(name) if value is None else value for name, value in changes.items()})


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The limits as JSON values; raises SettingsError."""
    try:
        return Limits.model_validate(values).model_dump(mode="json", exclude_unset=True)
    except ValidationError as error:
        raise SettingsError(explain(error, Limits, _SOURCE)) from error
