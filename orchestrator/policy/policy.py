"""What a definition may use, by the operator's settings: asked at submission and by the worker.

A rule binds what definitions say. What the `spark` of a pool says in the settings is the operator's own.
"""

import re
from collections.abc import Mapping

from orchestrator.models.definition import Definition
from orchestrator.models.spark import DEFAULT_MASTER, Spark
from orchestrator.plan import Plan
from orchestrator.policy.code import check_code
from orchestrator.policy.files import check_files
from orchestrator.policy.patterns import matches, matches_any
from orchestrator.policy.ports import openings
from orchestrator.policy.rules import ALL_POOLS, Listed, Refused, Rules, reserved
from orchestrator.policy.settings import PoolPolicy
from orchestrator.policy.variables import check_named, check_receiver, check_variables
from queues.names import LOW
from spark_runner.runners.base import SparkTarget, backend_of
from spark_runner.sql.references import FILE_FORMATS

__all__ = ["ALL_POOLS", "Listed", "Policy", "Refused"]
_DEFAULT_NAMESPACE = "default"
_PLAIN_ADDRESS = re.compile(r"(?:[a-z]+://)?([A-Za-z0-9._-]+)(?::[0-9]{1,5})?/?")
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
"""Properties with which a definition would redirect the worker's own credentials, and why not."""

_NOT_RESERVED = (
    "spark.kubernetes.authenticate.driver.serviceAccountName",
    "spark.kubernetes.authenticate.executor.serviceAccountName",
)
_IMAGES = (
    "spark.kubernetes.container.image",
    "spark.kubernetes.driver.container.image",
    "spark.kubernetes.executor.container.image",
)


class Policy:
    """The rules of all pools."""

    def __init__(
        self, tables: Mapping[str, PoolPolicy] | None = None, run_as: Mapping[str, str] | None = None
    ) -> None:
        """`run_as` are the users of drivers by pool, as far as they are others than the worker."""
        self._tables = dict(tables or {})
        self._run_as = dict(run_as or {})

    def check(
        self,
        pool: str,
        definition: Definition,
        *,
        spark: Spark | None = None,
        plan: Plan | None = None,
    ) -> None:
        """Raise Refused for what the rules of the pool do not allow.

        `spark`: with what the worker fills in, where that is known; `plan`: that of a SQL script.
        """
        rules = Rules(pool.removesuffix(LOW), self._tables)
        own = definition.spark
        _check_reserved(own.conf)
        for name in own.conf:
            rules.allow("conf", name, f"the property {name!r}")
        _check_masters(rules, own, spark)
        _check_kubernetes(rules, own, spark)
        _check_pods(rules, own)
        check_code(rules, definition, spark)
        for name, reason in openings(own, spark):
            raise reserved(name, reason)
        check_variables(rules, definition)
        check_receiver(rules, definition.callback.url)
        if plan is not None and rules.find("connectors")[1] is not None:
            for connector in _connectors(plan):
                rules.allow("connectors", connector, f"the connector {connector!r}")

    def check_files(self, pool: str, definition: Definition, target: SparkTarget) -> None:
        """Raise Refused for a file of this host that a job in cluster mode may not have.

        For the worker to ask, right before it hands a driver over.
        """
        rules = Rules(pool.removesuffix(LOW), self._tables)
        check_files(rules, definition, target, runs_as=not {rules.pool, ALL_POOLS}.isdisjoint(self._run_as))

    def denied_formats(self, pool: str) -> list[str]:
        """Formats of files that queries of the pool may not name: the driver refuses them once more."""
        _, listed = Rules(pool.removesuffix(LOW), self._tables).find("connectors")
        return [] if listed is None else [name for name in FILE_FORMATS if not matches_any(listed, name)]

    def check_callback(self, pool: str, url: str, host: str, port: int) -> Listed:
        """How a receiver is listed; raises Refused for one that may not be called, or not with its variables.

        `url` is that of the definition. A job that `check` has refused reports its end, too.
        """
        rules = Rules(pool.removesuffix(LOW), self._tables)
        check_named(rules, [url])
        check_receiver(rules, url)
        return rules.check_host(host, port)


def _check_reserved(conf: Mapping[str, str]) -> None:
    for name in conf:
        for pattern, reason in _RESERVED:
            if matches(pattern, name) and name not in _NOT_RESERVED:
                raise reserved(name, reason)


def _check_masters(rules: Rules, own: Spark, filled: Spark | None) -> None:
    master = own.master
    if not master and filled is not None and not filled.master:
        master = DEFAULT_MASTER
    if backend_of(master) == "kubernetes" and not master.startswith("k8s://https://"):
        raise Refused(
            f"the master {master!r} is refused: credentials of workers are sent over https alone; "
            "write k8s://https://host:port"
        )
    hosts = _each_master(master)
    for name in hosts:
        rules.allow("masters", name, f"the master {name!r}")
    for field, urls in (
        ("standalone.rest", own.standalone.rest),
        ("standalone.ui", own.standalone.ui),
        ("yarn.resource_manager", own.yarn.resource_manager),
    ):
        for url in filter(None, map(str.strip, urls.split(","))):
            host = _host(url)
            if host is None or host not in {_host(name) for name in hosts if "://" in name}:
                rules.allow("masters", url, f"the address {url!r} in `spark.{field}`")


def _each_master(master: str) -> list[str]:
    """The masters of a cluster with several, one by one."""
    scheme, mark, hosts = master.partition("://")
    if scheme != "spark":
        return [master] if master else []
    return [f"{scheme}{mark}{host}" for host in hosts.split(",")]


def _host(url: str) -> str | None:
    """The host of an address that all clients read alike; None for any other."""
    found = _PLAIN_ADDRESS.fullmatch(url)
    return found[1].lower() if found else None


def _check_kubernetes(rules: Rules, own: Spark, filled: Spark | None) -> None:
    whole = filled or own
    if backend_of(whole.master) != "kubernetes":
        return
    namespace = own.kubernetes.namespace
    if not namespace and not whole.kubernetes.namespace:
        namespace = _DEFAULT_NAMESPACE
    if namespace:
        rules.allow("namespaces", namespace, f"the namespace {namespace!r}")
    if context := own.kubernetes.context:
        rules.allow("contexts", context, f"the context {context!r} of the kubeconfig", is_open=False)


def _check_pods(rules: Rules, own: Spark) -> None:
    """Images and service accounts; a template can name both, so where they are listed it has to be listed."""
    kubernetes = own.kubernetes
    for image in filter(None, (kubernetes.image, *(own.conf.get(name) for name in _IMAGES))):
        rules.allow("images", image, f"the image {image!r}")
    for account in filter(
        None, (kubernetes.service_account, *(own.conf.get(name) for name in _NOT_RESERVED))
    ):
        rules.allow("service_accounts", account, f"the service account {account!r}")
    template, (_, files) = kubernetes.pod_template, rules.find("files")
    for setting, listed in map(rules.find, ("images", "service_accounts")):
        if template and listed is not None and files is None:
            raise rules.refusal(
                setting, listed, f"the pod template {template!r}, which `files` does not list,"
            )


def _connectors(plan: Plan) -> list[str]:
    """Of the tables, and of files that queries name by themselves."""
    declared = {str(step.get("connector")) for step in plan["steps"] if step.get("kind") == "table"}
    return sorted(declared.union(map(str, plan["formats"])))
