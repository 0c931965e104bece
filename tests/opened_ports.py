"""Settings that make Spark open ports without a login, beyond loopback or to every user of the host."""

from collections.abc import Mapping

OPENINGS: list[dict[str, str]] = [
    {"spark.ui.enabled": "true"},
    {"spark.driver.bindAddress": "0.0.0.0"},  # noqa: S104 - the attack
    {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin"},
    {
        "spark.driver.extraJavaOptions": "-Dcom.sun.management.jmxremote.port=0 "
        "-Dcom.sun.management.jmxremote.authenticate=false -Dcom.sun.management.jmxremote.ssl=false"
    },
    {"spark.driver.extraJavaOptions": "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=*:0"},
    {"spark.driver.extraJavaOptions": "-Dspark.connect.grpc.binding.port=0 -Dspark.extra=1"},
]


def all_of(confs: list[dict[str, str]]) -> Mapping[str, str]:
    """All of these settings in one driver."""
    joined: dict[str, str] = {}
    for conf in confs:
        for name, value in conf.items():
            joined[name] = f"{joined.get(name, '')} {value}".strip()
    return joined
