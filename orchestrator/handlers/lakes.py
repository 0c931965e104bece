"""What Spark needs for the catalogs of Iceberg and Delta Lake that a script sets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.model.plan import Plan
from orchestrator.model.spark import Spark

_EXTENSIONS = "spark.sql.extensions"  # Spark reads it once, before the session of a script begins
_JARS = ("spark.jars", "spark.jars.packages")


@dataclass(frozen=True)
class Lake:
    """A kind of table."""

    name: str  # in the setting `connector_jars`
    catalogs: tuple[str, ...]  # classes
    package: str  # group and the begin of the name of the artifact
    versions: Mapping[str, str]  # the rest of the coordinates, by the line of Spark
    extension: str = ""


LAKES = (
    Lake(
        "iceberg",
        ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog"),
        "org.apache.iceberg:iceberg-spark-runtime",
        {"4.1": "-4.1_2.13:1.11.0"},
    ),
    Lake(
        "delta",
        ("org.apache.spark.sql.delta.catalog.DeltaCatalog",),
        "io.delta:delta-spark",
        {"4.1": "_2.13:4.1.0"},
        "io.delta.sql.DeltaSparkSessionExtension",
    ),
)


def lakes_of(plan: Plan | None) -> list[Lake]:
    """The kinds whose catalogs a script sets, as in `SET spark.sql.catalog.lake = CLASS`."""
    steps = () if plan is None else plan["steps"]
    values = {str(step.get("value", "")).strip() for step in steps if step.get("kind") == "set"}
    return [lake for lake in LAKES if values & {*lake.catalogs}]


def with_lakes(
    spark: Spark, lakes: Iterable[Lake], replaced: Mapping[str, tuple[str, ...]], version: str
) -> Spark:
    """The part `spark` of a definition with what the kinds need for a version of Spark as 4.1.4.

    `replaced` are the jars of the operator. A definition that names a package of a kind itself, in any
    version, keeps it; so does one for a line without a package here.
    """
    line = ".".join(version.split(".")[:2])
    for lake in lakes:
        more = lake.versions.get(line)
        by_conf = (spark.conf.get(name, "") for name in _JARS)
        is_named = lake.package.partition(":")[2] in " ".join((*spark.packages, *spark.jars, *by_conf))
        own_jars = () if is_named else replaced.get(lake.name, ())
        packages = () if more is None or is_named or own_jars else (lake.package + more,)
        given = spark.conf.get(_EXTENSIONS, "")
        extensions = dict.fromkeys(filter(None, (*given.split(","), lake.extension)))
        conf = {_EXTENSIONS: ",".join(extensions)} if extensions else {}
        spark = spark.model_copy(
            update={
                "packages": (*spark.packages, *packages),
                "jars": (*spark.jars, *own_jars),
                "conf": {**spark.conf, **conf},
            }
        )
    return spark
