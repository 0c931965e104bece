"""The commands of `orchestrator config`, and the meaning of the NAME and VALUE of `config set`."""

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, get_type_hints

import typer
from pydantic import TypeAdapter, ValidationError
from rich.text import Text

from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.client.client import Client
from orchestrator.config.installations import described, is_spark_home
from orchestrator.config.live_limits import check_limits
from orchestrator.config.origins import Origin, Setting, local_settings, variables
from orchestrator.config.settings import Settings, config_file, load_settings
from orchestrator.model.errors import NotRunning, SettingsError
from orchestrator.model.fields import field_at, format_seconds, is_duration
from orchestrator.model.limits import Limits
from orchestrator.model.paths import Nodes
from orchestrator.model.times import local_time
from queues import LONGEST_ID_CHARACTERS, LS_LIMITS, Layout, PoolLimits, QueueError, check_pool, ls_limit
from spark_runner.protocol.text import nearest, shortened

POOL_LIMITS: dict[str, Any] = get_type_hints(PoolLimits)  # name -> type


@dataclass(frozen=True, slots=True)
class Target:
    """The limit that a NAME refers to: of all workers, or of a pool."""

    name: str
    pool: str
    limit: str

    @classmethod
    def parse(cls, name: str) -> "Target":
        """Parse a NAME; raises InvalidName, or SettingsError that suggests the nearest name."""
        if name in Limits.model_fields:
            return cls(name, "", name)
        pool, dot, limit = name.removeprefix("pool.").rpartition(".")
        if name.startswith("pool.") and dot:
            if limit not in POOL_LIMITS:
                raise _unknown(name, [f"pool.{pool}.{known}" for known in POOL_LIMITS])
            return cls(name, check_pool(pool), limit)
        if (own := name.partition(".")[0]) in Settings.model_fields:
            variable, file = variables([own])[0], config_file()
            raise SettingsError(f"{own} is a setting of each process: set {variable}, or {own} in {file}")
        raise _unknown(name, [*Limits.model_fields, *(f"pool.POOL.{known}" for known in POOL_LIMITS)])

    def value(self, text: str) -> Any:
        """Parse a VALUE; raises SettingsError or InvalidLimit for an invalid one."""
        if not self.pool:
            check_limits({self.limit: text})
            return text
        value: Any = text
        with contextlib.suppress(ValidationError):  # the error of PoolLimits is the clearer one
            value = TypeAdapter(POOL_LIMITS[self.limit]).validate_python(text)
        PoolLimits(**{self.limit: value})
        return value

    def change(self, client: Client, value: Any) -> Any:
        """Set the value, or reset it with None; returns the value now in effect."""
        if not self.pool:
            return getattr(client.config.change(**{self.limit: value}), self.limit)
        value = getattr(PoolLimits(), self.limit) if value is None else value
        return getattr(client.change_pool(self.pool, **{self.limit: value}), self.limit)

    def warning(self, value: Any) -> str:
        """The warning for a new value; empty without one."""
        if self.limit == "bound" and value > ls_limit(LONGEST_ID_CHARACTERS):
            return f"a queue of {value:,} jobs may be too long for a listing with zkCli: {LS_LIMITS}"
        return ""


def _unknown(name: str, known: list[str]) -> SettingsError:
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
    return SettingsError(f"there is no limit {shortened(name, 100)!r}; {hint}")


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help=f"{', '.join(Limits.model_fields)}, or pool.POOL.LIMIT with {', '.join(POOL_LIMITS)}.",
    ),
]
_COLUMNS = {"name": "name", "shown": "value", "origin": "from", "place": "place"}
_CHANGES = {
    "version": "version",
    "at_here": "when",
    "by": "by",
    "host": "host",
    "name": "name",
    "was": "before",
    "now": "after",
}


def show(
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Show only the limits of all workers; exit 3 without ZooKeeper.")
    ] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="Show only what does not have its default.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show every setting with its value and origin.

    Values in ZooKeeper apply to all workers. The other values are those of this shell; the options of a
    command override them. A terminal shows what does not have its default in bold.

    Example: orchestrator config show --changed
    """
    settings = load_settings()
    local = local_settings(settings)
    unknown = ""
    try:
        with connected(start_own=False) as (client, _):
            shared = _cluster_settings(client, settings, {setting.name: setting for setting in local})
    except (QueueError, NotRunning) as error:
        if cluster:
            raise
        shared = {}
        unknown = f"the limits of all workers are not shown, and may differ from these values: {error}"
    mine = [] if cluster else [setting for setting in local if setting.name not in shared]
    shown = [each for each in (*mine, *shared.values()) if not changed or each.origin is not Origin.DEFAULT]
    # Without a configured ZooKeeper there are no other workers whose limits could differ.
    said = "" if changed and not settings.zookeeper_hosts and unknown else unknown
    rows = [_row(setting, output) for setting in shown]
    if not rows and output is OutputFormat.TABLE:
        said = said or "no setting differs from its default"
    else:
        show_rows(rows, _COLUMNS, output)
    if said and not quiet:
        stderr_console().print(said, markup=False)


def _cluster_settings(client: Client, settings: Settings, local: Mapping[str, Setting]) -> dict[str, Setting]:
    nodes, layout = Nodes(settings.root), Layout(settings.root)
    values = client.config.read().values
    found = [
        Setting(name, values[name], Origin.ZOOKEEPER, nodes.config)
        if name in values
        else local.get(name, Setting(name, default, Origin.DEFAULT))
        for name, default in Limits().model_dump(mode="json").items()
    ]
    usual = asdict(PoolLimits())
    for pool, limits in client.pools().items():
        for name, value in asdict(limits).items():
            place = "" if value == usual[name] else layout.pool(pool)
            origin = Origin.ZOOKEEPER if place else Origin.DEFAULT
            found.append(Setting(f"pool.{pool}.{name}", value, origin, place))
    return {setting.name: setting for setting in found}


def set_(
    name: Name,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="The new value, for example 30d, 20 or true.")
    ],
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Set a limit for all workers, or of a pool; it takes effect at once.

    Example: orchestrator config set pool.default.cap 20
    """
    target = Target.parse(name)
    wanted = target.value(value)
    with connected(start_own=False) as (client, _):
        now = target.change(client, wanted)
    if not quiet:
        stderr_console().print(f"{name} is {_shown(name, now)} for all workers", markup=False)
    if warning := target.warning(now):
        stderr_console().print(f"warning: {warning}", markup=False)


def unset(name: Name, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Reset a limit to its default, or to the setting of each worker.

    Example: orchestrator config unset pool.default.cap
    """
    target = Target.parse(name)
    with connected(start_own=False) as (client, _):
        now = target.change(client, None)
    if not quiet:
        words = f"is {_shown(name, now)} again" if target.pool else "now follows the settings of each worker"
        stderr_console().print(f"{name} {words}", markup=False)


def history(output: Output = OutputFormat.TABLE, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Show the changes of limits with their author, old and new value, oldest first.

    ZooKeeper keeps the last 20 changes of the limits of all workers and the last 10 of each pool; the logs
    have all changes.

    Example: orchestrator config history -o json
    """
    with connected(start_own=False) as (client, _):
        changes = client.changes()
    rows: list[dict[str, Any]] = []
    for change in changes:
        for name in change.after:
            target = f"pool.{change.pool}.{name}" if change.pool else name
            row = {"version": change.version, "at": change.at, "by": change.by, "host": change.host}
            row |= {"name": target}
            row |= {"before": change.before.get(name), "after": change.after[name]}
            if output is OutputFormat.TABLE:
                row |= {"at_here": local_time(change.at)}
                row |= {"was": _shown(name, row["before"]), "now": _shown(name, row["after"])}
            rows.append(row)
    show_rows(rows, _CHANGES, output, none="" if quiet else "no limit was changed")


def _row(setting: Setting, output: OutputFormat) -> dict[str, Any]:
    row = asdict(setting)
    if output is not OutputFormat.TABLE:
        return row
    style = "" if setting.origin is Origin.DEFAULT else "bold"
    row["shown"] = _shown(setting.name, setting.value)
    return {key: Text(str(value), style) for key, value in row.items()}


def _shown(name: str, value: Any) -> str:
    """A value in the form that `config set` and the TOML file accept."""
    field = Limits.model_fields.get(name) or field_at(Settings, name.split("."))
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if value and is_spark_home(name):
        return f"{value} ({described(value)})"
    return format_seconds(value) if field is not None and is_duration(field) else str(value)
