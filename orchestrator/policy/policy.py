"""The policy of the operator on definitions: checked at submission, and again by the worker.

The rules bind definitions. The setting `spark` of a pool belongs to the operator, so they do not bind it.
"""

import re
from collections.abc import Iterable, Mapping

from orchestrator.config.tables import ALL_POOLS, PoolPolicy
from orchestrator.model.definition import Definition
from orchestrator.model.plan import Plan, plan_references
from orchestrator.model.requirements import name_of
from orchestrator.model.spark import DEFAULT_MASTER, Spark
from orchestrator.policy.checks import (
    check_code,
    check_named,
    check_receiver,
    check_references,
    check_variables,
    openings,
)
from orchestrator.policy.files import check_files
from orchestrator.policy.rules import (
    SERVICE_ACCOUNTS,
    Listed,
    PolicyRefused,
    Rules,
    check_reserved,
    reserved,
)
from spark_runner.runners.base import SparkTarget, backend_of
from spark_runner.sql.grammar.references import FILE_FORMATS

CATALOG = "catalog"
"""The word for all catalogs of Spark in the list of connectors."""

_DEFAULT_NAMESPACE = "default"
_PLAIN_ADDRESS = re.compile(r"(?:[a-z]+://)?([A-Za-z0-9._-]+)(?::[0-9]{1,5})?/?")
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
        """`run_as` are the users of drivers by pool, where they differ from the user of the worker."""
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
        """Raise PolicyRefused for anything that the rules of the pool do not allow.

        `spark`: the Spark part with the values that the worker fills in, where known. `plan`: the plan of a
        SQL script.
        """
        rules = Rules(pool, self._tables)
        own = definition.spark
        check_reserved(own.conf)
        for name in own.conf:
            rules.allow("conf", name, f"the property {name!r}")
        _check_masters(rules, own, spark)
        _check_kubernetes(rules, own, spark)
        _check_pods(rules, own)
        check_code(rules, definition, spark)
        for name, reason in openings(own, spark):
            raise reserved(name, reason)
        for requirement in definition.requirements:
            rules.allow("requirements", name_of(requirement), f"the Python package {requirement!r}")
        check_variables(rules, definition)
        check_receiver(rules, definition.callback.url)
        check_references(rules, plan_references(plan))
        if plan is not None and rules.find("connectors")[1] is not None:
            for connector in _connectors(plan):
                rules.allow("connectors", connector, f"the connector {connector!r}")

    def check_files(self, pool: str, definition: Definition, target: SparkTarget) -> None:
        """Raise PolicyRefused for a file of this host that a job in cluster mode may not use.

        The worker calls it right before it submits a driver.
        """
        rules = Rules(pool, self._tables)
        check_files(rules, definition, target, runs_as=not {rules.pool, ALL_POOLS}.isdisjoint(self._run_as))

    def check_functions(self, pool: str, names: Iterable[str]) -> None:
        """Raise PolicyRefused for a function of the platform that the pool may not call.

        A driver knows only the functions that its worker gives it, so this check needs no second one.
        """
        rules = Rules(pool, self._tables)
        for name in names:
            rules.allow("functions", name, f"the function {name!r}")

    def denied_formats(self, pool: str) -> list[str]:
        """The file formats that queries of the pool may not name: the driver checks them again."""
        return Rules(pool, self._tables).unlisted("connectors", FILE_FORMATS)

    def denies_catalogs(self, pool: str) -> bool:
        """Whether scripts of the pool may not name tables of Spark catalogs: the driver checks it again."""
        return bool(Rules(pool, self._tables).unlisted("connectors", (CATALOG,)))

    def check_callback(self, pool: str, url: str, host: str, port: int) -> Listed:
        """How the operator lists a receiver of callbacks.

        Raises PolicyRefused for a receiver that may not be called, or not with the variables in `url`, the
        address in the definition. A job that `check` has refused reports its end, too.
        """
        rules = Rules(pool, self._tables)
        check_named(rules, [url])
        check_receiver(rules, url)
        return rules.check_host(host, port)


def _check_masters(rules: Rules, own: Spark, filled: Spark | None) -> None:
    master = own.master
    if not master and filled is not None and not filled.master:
        master = DEFAULT_MASTER
    if backend_of(master) == "kubernetes" and not master.startswith("k8s://https://"):
        raise PolicyRefused(
            f"the master {master!r} is refused: workers send their credentials over https only; "
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
    """Each master of a cluster that has several."""
    scheme, mark, hosts = master.partition("://")
    if scheme != "spark":
        return [master] if master else []
    return [f"{scheme}{mark}{host}" for host in hosts.split(",")]


def _host(url: str) -> str | None:
    """The host of an address that all clients parse alike; None for any other."""
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
    """Check images and service accounts; a pod template can name both, so their list needs one of files."""
    kubernetes = own.kubernetes
    for image in filter(None, (kubernetes.image, *(own.conf.get(name) for name in _IMAGES))):
        rules.allow("images", image, f"the image {image!r}")
    for account in filter(
        None, (kubernetes.service_account, *(own.conf.get(name) for name in SERVICE_ACCOUNTS))
    ):
        rules.allow("service_accounts", account, f"the service account {account!r}")
    template, (_, files) = kubernetes.pod_template, rules.find("files")
    for setting, listed in map(rules.find, ("images", "service_accounts")):
        if template and listed is not None and files is None:
            raise rules.refusal(
                setting, listed, f"the pod template {template!r}, which `files` does not list,"
            )


def _connectors(plan: Plan) -> list[str]:
    """The connectors of the tables of a plan, and of the files and catalogs that its queries name."""
    declared = {str(step.get("connector")) for step in plan["steps"] if step.get("kind") == "table"}
    named = (CATALOG,) if plan.get("names_catalogs") else ()
    return sorted(declared.union(map(str, plan["formats"]), named))
