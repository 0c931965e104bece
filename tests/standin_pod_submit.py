"""Replaces the spark-submit that creates a driver pod: the same pod, with tests/standin_submit.py inside.

No JVM on this host nor in the pod: seconds less per job. Tests marked `spark` cover Spark itself.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.servers.kubernetes.api import Api, ApiAddress, ApiError

SECRETS = "spark.kubernetes.driver.secrets."
LABELS = "spark.kubernetes.driver.label."
PLAIN = "spark.standin.plain"
VARIABLES = "spark.kubernetes.driverEnv."


def read_properties(path: Path) -> dict[str, str]:
    """The pairs of a file that `render_properties` wrote."""
    pairs = (re.split(r"(?<!\\)=", line, maxsplit=1) for line in path.read_text("utf-8").splitlines())
    return {re.sub(r"\\(.)", r"\1", name): re.sub(r"\\(.)", r"\1", value) for name, value in pairs}


def taken(properties: dict[str, str], prefix: str) -> dict[str, str]:
    return {name[len(prefix) :]: value for name, value in properties.items() if name.startswith(prefix)}


def driver_pod(properties: dict[str, str], plan: str) -> dict[str, Any]:
    secrets = taken(properties, SECRETS)
    (code,) = (path for path in secrets.values() if path.endswith("code"))
    variables = {**taken(properties, VARIABLES), "PYTHONPATH": f"{code}/driver.zip"}
    program = str(Path(__file__).with_name("standin_submit.py"))
    if properties.get(PLAIN):  # a file given to the runner, without an attempt
        program = f"{code}/driver_main.py"
    memory = properties.get("spark.driver.memory", "1g").removesuffix("g")
    return {
        "metadata": {
            "name": properties["spark.kubernetes.driver.pod.name"],
            "labels": {**taken(properties, LABELS), "spark-role": "driver"},
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": properties.get(
                "spark.kubernetes.authenticate.driver.serviceAccountName", "default"
            ),
            "volumes": [{"name": f"{name}-volume", "secret": {"secretName": name}} for name in secrets],
            "containers": [
                {
                    "name": "spark-kubernetes-driver",
                    "image": properties["spark.kubernetes.container.image"],
                    "command": [sys.executable, program, plan],
                    "env": [{"name": name, "value": value} for name, value in variables.items()],
                    "resources": {"requests": {"memory": f"{memory}Gi"}},
                    "volumeMounts": [
                        {"name": f"{name}-volume", "mountPath": path} for name, path in secrets.items()
                    ],
                }
            ],
        },
    }


def main(arguments: list[str]) -> int:
    properties = read_properties(Path(arguments[arguments.index("--properties-file") + 1]))
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text("utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    url = arguments[arguments.index("--master") + 1].removeprefix("k8s://")
    api = Api(ApiAddress(url, Path(cluster["certificate-authority"]), user["token"]))
    path = f"/api/v1/namespaces/{properties['spark.kubernetes.namespace']}/pods"
    try:
        api.create(path, driver_pod(properties, arguments[-1]))
    except ApiError as error:
        # The message of Spark's client.
        print(  # noqa: T201 - its log
            'Exception in thread "main" io.fabric8.kubernetes.client.KubernetesClientException: '
            f"Failure executing: POST at: {url}{path}. Message: {error.message}. "
            f"Received status: Status(apiVersion=v1, code={error.status}, details=null, kind=Status, "
            f"message={error.message}, reason={error.reason}, status=Failure, additionalProperties={{}}).",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
