"""The configuration of a server: its settings, its zoo.cfg and its log configuration."""

from dataclasses import dataclass, field
from pathlib import Path

from queues.session.settings import Login

LOOPBACK = "127.0.0.1"

CONFIG_FILE = "zoo.cfg"
LOG_CONFIG_FILE = "log4j2.properties"
LOG_FILE = "zookeeper.log"
OUTPUT_FILE = "zookeeper.out"
"""The output of the JVM itself, before and beside its log."""

STATE_FOLDER = "data"

LONGEST_SESSION_MS = 40_000
"""ZooKeeper's default for ticks of 2 s, kept for shorter ticks so that any usual timeout is granted."""

LOG_CONFIG = f"""\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {LOG_FILE}
appender.file.filePattern = {LOG_FILE}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %-5p [%t] %c{{1}} - %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 5MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


@dataclass(frozen=True, slots=True)
class EnsembleMember:
    """The position of a server in an ensemble: its id, and `host:quorum-port:election-port` of all by id.

    `identity` tells this ensemble from others: a data directory of another one is refused.
    """

    id: int
    servers: tuple[tuple[int, str], ...]
    identity: str = ""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Settings of one server.

    `port` None or 0 takes the port of the last run in this directory if it is free, so that running clients
    find the server again, else any free port. A client can have a session timeout from 2 ticks up to 40 s.
    `owner` is shown to a user who finds the directory in use. `long_run`: the server will serve more than one
    job, and may take longer to start. `closed`: only the login in its data directory, which is private, has
    rights on its nodes; else every client that reaches the port has all rights. `login`: that login, if the
    members of an ensemble share one.
    """

    data_dir: Path
    port: int | None = None
    host: str = LOOPBACK
    tick_ms: int = 2000
    heap_mb: int = 256
    long_run: bool = False
    closed: bool = False
    login: Login | None = None
    start_timeout_s: float = 60.0
    owner: str = ""
    member: EnsembleMember | None = None
    settings: tuple[
        tuple[str, str], ...
    ] = ()  # further lines of zoo.cfg, or replacements of the default ones
    jvm_options: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # private ones of the data directory

    def __post_init__(self) -> None:
        if not 0 < self.tick_ms <= LONGEST_SESSION_MS // 2:
            raise ValueError(f"tick_ms must be from 1 to {LONGEST_SESSION_MS // 2}, it is {self.tick_ms}")

    def zoo_cfg(self, port: int, superuser: str = "") -> str:
        """Return the text of zoo.cfg for the chosen port; `superuser` is the digest of one, if any.

        Paths are relative to the server's working directory, the data directory, so that no folder name needs
        escaping.
        """
        settings = {
            "dataDir": f"./{STATE_FOLDER}",
            "clientPort": port,
            "clientPortAddress": self.host,
            "tickTime": self.tick_ms,
            "maxSessionTimeout": LONGEST_SESSION_MS,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",  # else ZooKeeper opens a web server on port 8080
            # A closed server answers only `srvr`, which no setting turns off: version, mode, request counts.
            "4lw.commands.whitelist": "" if self.closed else "ruok,srvr,mntr,stat,cons",
            "autopurge.snapRetainCount": 3,
            "autopurge.purgeInterval": 24,
            "standaloneEnabled": "true",
            **dict(self.settings),
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        if self.member is not None:
            # In ticks, twice the usual 10 and 5: three servers on two busy cores are slow.
            lines += ["initLimit=20", "syncLimit=10"]
            lines += [f"server.{number}={address}" for number, address in self.member.servers]
        if superuser:
            lines.append(f"DigestAuthenticationProvider.superDigest={superuser}")
        return "\n".join(lines) + "\n"


def port_of_last_run(data_dir: Path) -> int | None:
    """Return the client port in the zoo.cfg of the last run, None if there is none."""
    try:
        text = (data_dir / CONFIG_FILE).read_text("utf-8")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "clientPort" and value.isdecimal():
            return int(value)
    return None
