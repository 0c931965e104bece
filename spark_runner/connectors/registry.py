"""The connectors: those of this package, and those that other packages register by an entry point.

    [project.entry-points."spark_job_orchestrator.connectors"]
    acme = "acme_rows:CONNECTOR"

The name of the entry point is the name of the connector in scripts; its object is a `Connector`.
"""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_runner.connectors.errors import ConnectorError, NotInstalled
from spark_runner.connectors.spark_modules import SPARK

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "spark_job_orchestrator.connectors"
"""The entry points of other packages: the name in scripts -> a Connector."""


@dataclass(frozen=True, slots=True)
class Connector:
    """The parts of a connector, each as "module:attribute".

    A part is imported where it is used first. The options are a subclass of `ConnectorOptions`, for the
    compiler. The classes of `source` and `sink` run in the driver, made without arguments; their modules
    import the standard library, PySpark and pure Python alone. An empty one means that the connector cannot
    read, or cannot write.
    """

    options: str
    source: str = ""
    sink: str = ""
    # Maven coordinates of what Spark needs for it, group:artifact:version; `{spark}` is the version
    # of the modules for the line of Spark that runs the job.
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()  # further Python packages that source and sink import
    on_executors: bool = True  # Python code of source or sink runs in the tasks of Spark

    def python_packages(self) -> tuple[str, ...]:
        """The top-level Python packages that must travel to the driver or to executors, wherever they are."""
        own = {part.partition(":")[0].partition(".")[0] for part in (self.source, self.sink) if part}
        if not self.on_executors:
            own -= {"spark_runner"}  # every driver has it
        return tuple(sorted({*own, *self.modules}))

    def to_json(self) -> dict[str, Any]:
        """The form in a plan: what a driver needs."""
        return {"source": self.source, "sink": self.sink}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Connector":
        """Read that form."""
        return cls(options="", source=str(document["source"]), sink=str(document["sink"]))


def _files(file_format: str) -> Connector:
    folder, name = "spark_runner.connectors.files", file_format.capitalize()
    return Connector(
        f"{folder}.options:{name}Options",
        f"{folder}.source:{name}Source",
        f"{folder}.sink:{name}Sink",
        on_executors=False,
    )


BUILT_IN: Mapping[str, Connector] = {
    "parquet": _files("parquet"),
    "csv": _files("csv"),
    "json": _files("json"),
    "orc": _files("orc"),
    "text": _files("text"),
    "redis": Connector(
        "spark_runner.connectors.redis.options:RedisOptions",
        "spark_runner.connectors.redis.source:RedisSource",
        "spark_runner.connectors.redis.sink:RedisSink",
        modules=("redis",),
    ),
    "elasticsearch": Connector(
        "spark_runner.connectors.elasticsearch.options:ElasticsearchOptions",
        "spark_runner.connectors.elasticsearch.source:ElasticsearchSource",
        "spark_runner.connectors.elasticsearch.sink:ElasticsearchSink",
        modules=("urllib3",),
    ),
    "print": Connector(
        "spark_runner.connectors.print.options:PrintOptions",
        sink="spark_runner.connectors.print.sink:PrintSink",
        on_executors=False,
    ),
    "blackhole": Connector(
        "spark_runner.connectors.blackhole.options:BlackholeOptions",
        sink="spark_runner.connectors.blackhole.sink:BlackholeSink",
        on_executors=False,
    ),
    "inline": Connector(
        "spark_runner.connectors.inline.options:InlineOptions",
        source="spark_runner.connectors.inline.source:InlineSource",
        on_executors=False,
    ),
    "kafka": Connector(
        "spark_runner.connectors.kafka.options:KafkaOptions",
        "spark_runner.connectors.kafka.source:KafkaSource",
        "spark_runner.connectors.kafka.sink:KafkaSink",
        packages=(
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}",
            f"org.apache.spark:spark-avro_2.13:{SPARK}",
        ),
        on_executors=False,
    ),
    "jdbc": Connector(
        "spark_runner.connectors.jdbc.options:JdbcOptions",
        "spark_runner.connectors.jdbc.source:JdbcSource",
        "spark_runner.connectors.jdbc.sink:JdbcSink",
        packages=("org.postgresql:postgresql:42.7.8", "org.mariadb.jdbc:mariadb-java-client:3.5.6"),
        modules=("pymysql",),
    ),
    "http": Connector(
        "spark_runner.connectors.http.options:HttpOptions",
        "spark_runner.connectors.http.source:HttpSource",
        "spark_runner.connectors.http.sink:HttpSink",
    ),
    "poll": Connector(
        "spark_runner.connectors.poll.options:PollOptions",
        sink="spark_runner.connectors.poll.sink:PollSink",
    ),
    "rate": Connector(
        "spark_runner.connectors.rate.options:RateOptions",
        source="spark_runner.connectors.rate.source:RateSource",
        on_executors=False,
    ),
}

ALIASES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "upsert-kafka": ("kafka", {"version": "universal-upsert"}),
}
"""Names that other engines have for a connector with these options."""


def find(name: str) -> Connector | None:
    """The connector of this name, in lower case; None without one. Raises ConnectorError for a broken one."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    point = _points().get(name)
    return None if point is None else _loaded(point)


def names() -> list[str]:
    """The names of all connectors; those of other packages follow."""
    return [*BUILT_IN, *sorted(_points().keys() - BUILT_IN.keys())]


def installed(used: Iterable[str]) -> dict[str, Connector]:
    """The connectors with these names.

    Raises NotInstalled for one that this host does not have, and ConnectorError for a broken one.
    """
    found = {}
    for name in sorted(set(used)):
        connector = find(name)
        if connector is None:
            raise NotInstalled(name)
        found[name] = connector
    return found


def load(part: str) -> Any:
    """The object that "module:attribute" names; raises ConnectorError with the reason."""
    module, _, attribute = part.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise ConnectorError(f"{part} cannot be loaded: {type(error).__name__}: {error}") from error


def _points() -> "dict[str, EntryPoint]":
    # Imported on first use: it takes as long as the rest of a command, and few scripts need it.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return {point.name.lower(): point for point in entry_points(group=ENTRY_POINTS)}


def _loaded(point: "EntryPoint") -> Connector:
    try:
        connector = point.load()
    except (Exception, SystemExit) as error:
        message = f"connector '{point.name}' of {point.value} cannot be loaded: {error}"
        raise ConnectorError(message) from error
    if not isinstance(connector, Connector):
        kind = type(connector).__name__
        raise ConnectorError(f"connector '{point.name}': {point.value} is a {kind}, not a Connector")
    for name in ("options", "source", "sink"):
        if not isinstance(getattr(connector, name), str):
            raise ConnectorError(f"connector '{point.name}': `{name}` is not a text 'module:attribute'")
    for name in ("packages", "modules"):
        given = getattr(connector, name)
        # A text is a sequence of texts, too: of its characters.
        if not isinstance(given, tuple | list) or not all(isinstance(each, str) for each in given):
            raise ConnectorError(f"connector '{point.name}': `{name}` is not a tuple of texts")
    return connector
