"""Settings: flag > environment > TOML file > default."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from orchestrator.config.event_logs import EventLogSettings
from orchestrator.config.listening import Listening, is_loopback
from orchestrator.config.references import ReferenceSettings
from orchestrator.config.sources import PREFIX, from_environment, from_file, merged, names
from orchestrator.config.tables import ALL_POOLS, ArchiveSettings, DriverSettings, PoolPolicy, WarmSettings
from orchestrator.config.tuning import PoolTuning
from orchestrator.config.zookeeper import DriverAccess, GroupLogin, LoginFile, TlsFiles
from orchestrator.logs.settings import LogSettings
from orchestrator.model.errors import SettingsError
from orchestrator.model.fields import Seconds, check_files, explain
from queues import Acl
from spark_runner.protocol.control_groups import usable_processors

_NAME = "spark-job-orchestrator"
_CONFIG = "ORCHESTRATOR_CONFIG"
_PORT = re.compile(r"[0-9]{1,5}")
_MAX_PORT = 65535
_FunctionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
_Target = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")]
_PATH = re.compile(r"(/[A-Za-z0-9._-]+)+")


def _state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / _NAME


def _cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / _NAME


def config_file() -> Path:
    """The TOML file of settings; it may be missing, unless ORCHESTRATOR_CONFIG names it."""
    named = os.environ.get(_CONFIG)
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / _NAME / "config.toml"


def hosts_origin(settings: "Settings") -> str:
    """What names the ZooKeeper of these settings, in words for an error."""
    for variable in names(Settings, "zookeeper_hosts"):
        if settings.zookeeper_hosts and os.environ.get(variable) == settings.zookeeper_hosts:
            return variable
    if settings.zookeeper_login is not None and settings.zookeeper_login.own_server:
        return f"the state directory {settings.state_dir}, where the server has noted it"
    try:
        in_file = file_settings().get("zookeeper_hosts") == settings.zookeeper_hosts
    except SettingsError:  # another user's file, or one with a mistake: these settings are not from it
        in_file = False
    return f"zookeeper_hosts in {config_file()}" if in_file else "zookeeper_hosts"


def file_settings() -> dict[str, Any]:
    """The settings in the TOML file; raises SettingsError when it exists, or is named, and cannot be read."""
    file, named = config_file(), bool(os.environ.get(_CONFIG))
    hint = f"; {_CONFIG} names it: correct or unset the variable" if named else ""
    try:
        return from_file(Settings, file, required=named)
    except OSError as error:
        raise SettingsError(f"the settings in {file} cannot be read: {error.strerror}{hint}") from error
    except ValueError as error:  # not TOML, or not a file
        raise SettingsError(f"{file}: {error}{hint}") from error


class Settings(BaseModel):
    """All settings; each is `ORCHESTRATOR_<NAME>` in the environment, or `<name>` in the TOML file.

    A field of a table is `ORCHESTRATOR_<TABLE>__<NAME>`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, validate_default=True)

    zookeeper_hosts: str = Field(
        "",
        validation_alias=AliasChoices(f"{PREFIX}ZOOKEEPER_HOSTS", "ZOOKEEPER_HOSTS"),
        description="host:port,host:port or host:port,host:port/folder; empty = the server that `up` or"
        " `zookeeper` runs on this host",
    )
    zookeeper_tls: TlsFiles | None = Field(None, description="encryption of the connection")
    zookeeper_login: LoginFile | None = Field(
        None, description="the login: a user, and a file with its password"
    )
    zookeeper_group: GroupLogin | None = Field(
        None,
        description="a second login, shared by a team: with acl creator it owns the nodes of all members;"
        " see docs/operating.md",
    )
    zookeeper_acl: Acl | None = Field(
        None,
        description="creator = only this login may use its nodes; the default with a login or certificate",
        examples=["open"],
    )
    zookeeper_drivers: DriverAccess = Field(
        default_factory=DriverAccess.model_construct,
        description="login and certificate of drivers, if the servers require one",
    )
    root: str = Field("/orchestrator", description="the node below which the orchestrator keeps everything")
    session_timeout: Annotated[Seconds, Field(ge=1, le=300)] = Field(
        10.0, description="timeout of a session; the server may grant less, by default at most 40 s"
    )
    connect_timeout: Annotated[Seconds, Field(ge=1, le=60)] = Field(
        10.0, description="time until ZooKeeper counts as unreachable"
    )
    worker_connect_timeout: Annotated[Seconds, Field(ge=1, le=3600)] = Field(
        120.0, description="time for which a worker that starts waits for ZooKeeper"
    )
    state_dir: Path = Field(
        default_factory=_state_dir, description="directory of runs, logs and the embedded ZooKeeper"
    )
    cache_dir: Path = Field(
        default_factory=_cache_dir,
        description="directory of data that can be rebuilt: class archives of drivers; see docs/start.md",
    )
    class_archives: bool = Field(
        True,
        description="build class archives, which let drivers start faster (up to 800 MB for each Spark)",
    )
    slots: Annotated[int, Field(ge=1, le=20_000)] = Field(
        default_factory=lambda: max(1, usable_processors() // 2),
        description="jobs that a worker runs at once; by default half the processors that it may use",
    )
    spark: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="by pool, * = all: defaults for the table spark of definitions; see docs/backends.md; and"
        " spark_home; see docs/spark-lines.md",
        examples=[{"*": {"driver": {"memory": "1g"}}}],
    )
    tuning: dict[str, PoolTuning] = Field(
        default_factory=dict,
        description="by pool, * = all: whether the resources of runs are tuned, and how; see docs/tuning.md",
    )
    policy: dict[str, PoolPolicy] = Field(
        default_factory=dict, description="by pool, * = all: what definitions may use; see docs/operating.md"
    )
    connector_jars: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="by connector: jars that Spark loads instead of its packages, for hosts without a"
        " Maven repository",
        examples=[{"kafka": ["/opt/jars/kafka-clients-3.9.1.jar"]}],
    )
    functions: dict[_FunctionName, _Target] = Field(
        default_factory=dict,
        description="functions for all scripts: name = module:function of a package on the workers;"
        " see docs/functions.md",
        examples=[{"mask_mail": "our_functions.text:mask_mail"}],
    )
    quarantine: str = Field(
        "",
        description="URL of a folder that all nodes share, for rows that do not fit; empty = the folder of"
        " the run, for drivers of this host; see docs/bad-rows.md",
    )
    checkpoints: dict[str, str] = Field(
        default_factory=dict,
        description="by pool, * = all: URL of a folder that all nodes share, for the progress of jobs that"
        " read streams; a text applies to all pools; empty = `checkpoints` in state_dir, for local Spark;"
        " see docs/modes.md",
        examples=["file:///shared/checkpoints"],
    )
    event_logs: dict[str, EventLogSettings] = Field(
        default_factory=dict,
        description="by pool, * = all: the folder of Spark's event logs, and their history server;"
        " see docs/spark-ui.md",
    )
    warm: WarmSettings = Field(
        default_factory=WarmSettings.model_construct,
        description="lifetime of the servers of pools with spark start = warm; see docs/start.md",
    )
    drivers: DriverSettings = Field(
        default_factory=DriverSettings.model_construct,
        description="environment and user of drivers; see docs/backends.md",
    )
    references: ReferenceSettings = Field(
        default_factory=ReferenceSettings.model_construct,
        description="sources of ${env:NAME} and ${secret:scope/key} in scripts; see docs/connections.md",
    )
    retention: Annotated[Seconds, Field(ge=60)] = Field(
        7 * 86400.0, description="how long finish keeps jobs; `job wait` must see the end within this time"
    )
    archive: ArchiveSettings = Field(
        default_factory=ArchiveSettings.model_construct,
        description="destination of jobs at the end of `retention`; see docs/archive.md",
    )
    logs: LogSettings = Field(
        default_factory=LogSettings.model_construct,
        description="the log spool, and the target of logs; see docs/logs.md",
    )
    metrics: Listening = Field(
        default_factory=Listening.model_construct,
        description="address at which a worker serves metrics and probes; see docs/operating.md",
    )
    cpu_pressure_limit: Annotated[float, Field(ge=0, le=100)] = Field(
        0.0,
        description="percentage of time that work waits for a CPU; above it, no job is claimed; 0 = off",
    )
    memory_pressure_limit: Annotated[float, Field(ge=0, le=100)] = Field(
        20.0,
        description="percentage of time that work waits for memory; above it, no job is claimed; 0 = off",
    )
    memory_guard: bool = Field(
        True, description="claim no job whose driver declares more memory than is free"
    )
    kill_grace: Annotated[Seconds, Field(ge=0, le=600)] = Field(
        10.0, description="time between SIGTERM and SIGKILL of a driver"
    )

    scrub_interval: Annotated[Seconds, Field(ge=1)] = Field(
        600.0, description="time between searches for damage in the queues"
    )

    @field_validator("state_dir", "cache_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("checkpoints", mode="before")
    @classmethod
    def _of_all_pools(cls, value: object) -> object:
        return ({ALL_POOLS: value} if value else {}) if isinstance(value, str) else value

    @field_validator("zookeeper_hosts")
    @classmethod
    def _are_hosts(cls, value: str) -> str:
        hosts, slash, folder = value.partition("/")
        for host in filter(None, hosts.split(",")):
            name, colon, port = host.rpartition(":")
            is_port = _PORT.fullmatch(port) and 0 < int(port) <= _MAX_PORT
            if not (name or port).isprintable() or (colon and not is_port):
                message = f"{host!r} is not host:port with a port from 1 to {_MAX_PORT}"
                raise ValueError(message)
        if slash and not (hosts and _PATH.fullmatch(slash + folder)):
            message = f"{value!r} is not host:port,host:port/folder"
            raise ValueError(message)
        return value

    @field_validator("logs", "archive", "metrics")
    @classmethod
    def _has_plain_files(cls, value: BaseModel) -> BaseModel:
        check_files(value)
        return value

    @field_validator("root")
    @classmethod
    def _is_root(cls, value: str) -> str:
        if not _PATH.fullmatch(value):
            message = f"{value!r} is not a path such as /orchestrator"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        group, login = self.zookeeper_group, self.zookeeper_login
        certified = self._has_certificate
        guarded = any(part is not None for part in (self.zookeeper_tls, login, group))
        if guarded and not self.zookeeper_hosts:
            message = "zookeeper_tls and zookeeper_login need zookeeper_hosts, which is not set"
            raise ValueError(message)
        is_safe = self.zookeeper_tls is not None or self.is_zookeeper_on_loopback
        of_drivers = self.zookeeper_drivers.login
        for name, used in (("zookeeper_login", login), ("zookeeper_drivers.login", of_drivers)):
            if used is not None and used.scheme == "sasl" and not (is_safe or used.without_tls):
                message = (
                    f"{name} with scheme 'sasl' is for servers that speak TLS: set zookeeper_tls, or "
                    f"{name}.without_tls where the network is trusted"
                )
                raise ValueError(message)
        if self.zookeeper_acl is Acl.CREATOR and not (login or certified):
            message = "zookeeper_acl = 'creator' needs zookeeper_login, or a certificate in zookeeper_tls"
            raise ValueError(message)
        if group is not None and (login.scheme == "digest" if login is not None else not certified):
            message = (
                "zookeeper_group is shared: each member also needs zookeeper_login with scheme sasl, or a "
                "certificate in zookeeper_tls"
            )
            raise ValueError(message)
        return self

    @property
    def _has_certificate(self) -> bool:
        return self.zookeeper_tls is not None and self.zookeeper_tls.certificate_file is not None

    @property
    def acl(self) -> Acl:
        """`zookeeper_acl`; if not set, `creator` with a login or certificate, else `open`."""
        if self.zookeeper_acl is not None:
            return self.zookeeper_acl
        return Acl.CREATOR if self.zookeeper_login or self._has_certificate else Acl.OPEN

    @property
    def is_zookeeper_on_loopback(self) -> bool:
        """Whether data that is sent to ZooKeeper stays on this host."""
        addresses = self.zookeeper_hosts.partition("/")[0].split(",")
        hosts = [address.rpartition(":")[0] or address for address in map(str.strip, addresses)]
        return all(is_loopback(host.strip("[]")) for host in hosts)

    @property
    def own_checkpoints(self) -> str:
        """The URL of the folder for the progress of local Spark, where no other is set."""
        return f"file:{self.state_dir.absolute()}/checkpoints"

    @property
    def logs_dir(self) -> Path:
        """The directory of log spools and dead letters, unless `logs.dir` names another."""
        return self.state_dir / "logs"

    @property
    def users_dir(self) -> Path:
        """The directory of drivers that run as another user; outside `state_dir`, which is private."""
        return self.state_dir.with_name(f"{self.state_dir.name}-users")

    @property
    def zookeeper_dir(self) -> Path:
        """The data of the embedded server."""
        return self.state_dir / "zookeeper"


def load_settings(**flags: Any) -> Settings:
    """The settings in force; flags that are None were not given. Raises SettingsError."""
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        below = merged(from_environment(Settings, os.environ), file_settings())
        return Settings.model_validate(merged(given, below))
    except ValidationError as error:
        raise SettingsError(explain(error, Settings, "settings")) from error
