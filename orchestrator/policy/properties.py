"""Spark properties of a definition: those that name files, and those that only an operator may set."""

from collections.abc import Iterator, Mapping

from orchestrator.policy.patterns import matches
from orchestrator.policy.rules import reserved

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
    ("spark.master", "say `spark.master` of the definition instead"),
    ("spark.submit.deployMode", "say `spark.deploy_mode` of the definition instead"),
    ("spark.kubernetes.authenticate.*", "it says with which credentials spark-submit acts"),
    ("spark.kubernetes.driver.master", "it says to which server a pod's credentials are sent"),
    ("spark.kubernetes.trust.certificates", "it says that any server may have the worker's credentials"),
    ("spark.hadoop.yarn.resourcemanager.*", "it says to which cluster spark-submit logs in"),
    ("spark.hadoop.hadoop.rpc.socket.factory.*", "it says to which cluster spark-submit logs in"),
    ("spark.hadoop.hadoop.socks.*", "it says to which cluster spark-submit logs in"),
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
