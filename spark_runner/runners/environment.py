"""The environment of a driver: names of a list, and nothing else that the worker happens to have.

A program can read all of it, and so can each process that it starts.
"""

import os
from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    {
        # who and where a process is: programs, the user's settings, temporary files, the local time
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "TZ",
        "LANG",
        "LANGUAGE",
        # where Java, Spark and Python are, and what an operator starts them with
        "JAVA_HOME",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "LD_LIBRARY_PATH",  # some builds of Python and of Hadoop do not start without
        "PYTHONPATH",
        "PYTHONUTF8",
        "SPARK_DIST_CLASSPATH",
        "SPARK_HOME",
        "SPARK_LAUNCHER_OPTS",
        "SPARK_LOCAL_IP",
        "SPARK_SUBMIT_OPTS",
        # file systems and clusters: addresses, and the ticket with which a driver goes there
        "HADOOP_CONF_DIR",
        "HADOOP_HOME",
        "HADOOP_USER_NAME",
        "YARN_CONF_DIR",
        "KRB5_CONFIG",
        "KRB5CCNAME",
        # which certificates are trusted
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    }
)
_LOCALE = "LC_"  # LC_ALL, LC_CTYPE ...
# A spark-submit that hands a driver over acts for the worker.
_OF_THE_WORKER = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KRB5_KTNAME")


def for_drivers(more: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a driver gets of an environment; `more` are the names that the operator adds."""
    names = _NAMES.union(more)
    return {name: value for name, value in environment.items() if name in names or name.startswith(_LOCALE)}


def for_hand_over(more: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a spark-submit gets that only hands a driver over to a cluster."""
    return for_drivers((*more, *_OF_THE_WORKER), environment)
