"""The rules of a pool: patterns of allow-lists, properties as Spark reads them, and the text of a refusal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from orchestrator.config.tables import ALL_POOLS, PoolPolicy
from orchestrator.model.errors import DefinitionError
from queues import LOW_LANE_SUFFIX

_BOUNDARIES = frozenset(
    "/@?#,\\ "
)  # a `*` inside a pattern never crosses from one part of a name to the next
_ENDS = frozenset("@\\ ,")  # nor does one at the end bring in another host, or another item of a list


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text; takes linear time for any input."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return text == pattern
    *middle, last = pieces
    start, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last) and start <= end):
        return False
    for piece in middle:
        found = text.find(piece, start, end)
        if found < 0 or not _BOUNDARIES.isdisjoint(text[start:found]):
            return False
        start = found + len(piece)
    forbidden = _BOUNDARIES if last else _ENDS
    return forbidden.isdisjoint(text[start:end])


def matches_any(patterns: Iterable[str], text: str) -> bool:
    """Whether one of the patterns matches.

    None matches a path with `..`, which servers resolve, or a reference that Spark fills in, `${...}`.
    """
    is_clear = "/../" not in f"{text}/" and "%2e" not in text.lower() and "${" not in text
    return is_clear and any(matches(pattern, text) for pattern in patterns)


FILE_LISTS = (
    *("spark.jars", "spark.files", "spark.submit.pyFiles", "spark.archives"),
    *("spark.yarn.jars", "spark.yarn.jar", "spark.yarn.archive"),
    *("spark.yarn.dist.jars", "spark.yarn.dist.files", "spark.yarn.dist.archives", "spark.yarn.dist.pyFiles"),
)
"""The properties that name files of a job, including old names."""

SERVICE_ACCOUNTS = (
    "spark.kubernetes.authenticate.driver.serviceAccountName",
    "spark.kubernetes.authenticate.executor.serviceAccountName",
)
"""The properties of Kubernetes authentication that a definition may set, if the policy allows the account."""

_RESERVED = (
    ("spark.master", "use `spark.master` of the definition instead"),
    ("spark.submit.deployMode", "use `spark.deploy_mode` of the definition instead"),
    ("spark.kubernetes.authenticate.*", "it selects the credentials of spark-submit"),
    ("spark.kubernetes.driver.master", "it selects the server that gets a pod's credentials"),
    ("spark.kubernetes.trust.certificates", "it allows any server to get the worker's credentials"),
    ("spark.hadoop.yarn.resourcemanager.*", "it selects the cluster to which spark-submit logs in"),
    ("spark.hadoop.hadoop.rpc.socket.factory.*", "it selects the cluster to which spark-submit logs in"),
    ("spark.hadoop.hadoop.socks.*", "it selects the cluster to which spark-submit logs in"),
)
"""Properties that would redirect the credentials of the worker, each with the reason of its refusal."""

_BLANKS = "".join(map(chr, range(ord(" ") + 1)))  # Java's `trim` removes control characters, too


def items(conf: Mapping[str, str], *names: str) -> Iterator[str]:
    """Each item of the named properties, which are lists, as Spark reads them."""
    for name in names:
        yield from filter(None, (item.strip(_BLANKS) for item in conf.get(name, "").split(",")))


def check_reserved(conf: Mapping[str, str]) -> None:
    """Raise PolicyRefused for a property that would redirect the credentials of the worker."""
    for name in conf:
        for pattern, reason in _RESERVED:
            if matches(pattern, name) and name not in SERVICE_ACCOUNTS:
                raise reserved(name, reason)


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
        self.pool = pool.removesuffix(LOW_LANE_SUFFIX)  # demoted jobs have the rules of their pool
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
