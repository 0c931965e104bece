"""The environment of a driver: only listed variables of the worker's own environment.

A program and each process that it starts can read all of it.
"""

import os
from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    {
        # the basics of a process: programs, the user's settings, temporary files, the local time
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "TZ",
        "LANG",
        "LANGUAGE",
        # the locations of Java, Spark and Python, and the operator's options for them
        "JAVA_HOME",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "LD_LIBRARY_PATH",  # some builds of Python and of Hadoop do not start without it
        "PYTHONPATH",
        "PYTHONUTF8",
        "SPARK_DIST_CLASSPATH",
        "SPARK_HOME",
        "SPARK_LAUNCHER_OPTS",
        "SPARK_LOCAL_IP",
        "SPARK_SUBMIT_OPTS",
        # file systems and clusters: addresses, and the driver's Kerberos ticket
        "HADOOP_CONF_DIR",
        "HADOOP_HOME",
        "HADOOP_USER_NAME",
        "YARN_CONF_DIR",
        "KRB5_CONFIG",
        "KRB5CCNAME",
        # the trusted certificates
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    }
)
_LOCALE = "LC_"  # LC_ALL, LC_CTYPE ...
# A spark-submit that submits a driver to a cluster acts for the worker.
_OF_THE_WORKER = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KRB5_KTNAME")


def for_drivers(more: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of an environment that a driver gets; the operator adds the names in `more`."""
    names = _NAMES.union(more)
    return {name: value for name, value in environment.items() if name in names or name.startswith(_LOCALE)}


def for_cluster_submit(more: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of an environment for a spark-submit that only submits a driver to a cluster."""
    return for_drivers((*more, *_OF_THE_WORKER), environment)
