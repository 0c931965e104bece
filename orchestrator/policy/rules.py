"""The rules of one pool, and the messages of refusals."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from orchestrator.errors import DefinitionError
from orchestrator.policy.patterns import matches_any
from orchestrator.policy.settings import PoolPolicy
from queues.names import LOW

ALL_POOLS = "*"


class PolicyRefused(DefinitionError):
    """The settings of the operator do not allow the definition; the message names the rule."""


class Listed(Enum):
    """The way in which an operator lists a host."""

    OPEN = "there is no list"
    BY_PATTERN = "an entry with * matches"
    BY_NAME = "an entry names it"


class Rules:
    """The rules of one pool: each from the table of the pool, else from that of all pools."""

    def __init__(self, pool: str, tables: Mapping[str, PoolPolicy]) -> None:
        self.pool = pool.removesuffix(LOW)  # demoted jobs have the rules of their pool
        self._tables = [(name, tables[name]) for name in (self.pool, ALL_POOLS) if name in tables]

    def find(self, rule: str) -> tuple[str, Sequence[str] | None]:
        """The name of the setting in force, and its list; None where there is no list."""
        for name, table in self._tables:
            if (listed := getattr(table, rule)) is not None:
                return setting_name(name, rule), listed
        return setting_name(ALL_POOLS, rule), None

    def allow(self, rule: str, value: str, what: str, *, is_open: bool = True) -> None:
        """Raise PolicyRefused unless the value is listed; `is_open`: without a list all are allowed."""
        setting, listed = self.find(rule)
        if listed is None and is_open:
            return
        if not matches_any(listed or (), value):
            raise self.refusal(setting, listed or (), what)

    def refusal(self, setting: str, listed: Sequence[str], what: str) -> PolicyRefused:
        """The error: what is refused, by which rule, and what is allowed."""
        allowed = f"allowed: {', '.join(listed)}" if listed else "none is allowed"
        return PolicyRefused(f"{what} is refused in pool {self.pool} by the setting {setting} ({allowed})")

    def unlisted(self, rule: str, values: Iterable[str]) -> list[str]:
        """The values that the list of the rule does not include; none where there is no list."""
        _, listed = self.find(rule)
        return [] if listed is None else [value for value in values if not matches_any(listed, value)]

    def check_host(self, host: str, port: int) -> Listed:
        """See `Policy.check_callback`."""
        setting, listed = self.find("callback_hosts")
        host = host.lower()
        names = (host, f"{host}:{port}")
        if listed is None:
            return Listed.OPEN
        if not any(matches_any(listed, name) for name in names):
            raise self.refusal(setting, listed, f"the callback to {host}:{port}")
        return Listed.BY_NAME if any(name in listed for name in names) else Listed.BY_PATTERN


def setting_name(pool: str, rule: str) -> str:
    """The name of a rule in the settings."""
    return f'policy."{pool}".{rule}' if pool == ALL_POOLS else f"policy.{pool}.{rule}"


def reserved(name: str, reason: str) -> PolicyRefused:
    """The error for a property that definitions cannot set."""
    return PolicyRefused(
        f"`conf` of a definition cannot set {name}: {reason}. "
        "An operator can set it in the setting `spark` of the pool"
    )
