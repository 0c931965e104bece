"""The volumes and variables of a pod, for a process of this host."""

import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.servers.kubernetes.api import Api, ApiError, Document

Folders = dict[str, Path]  # by mount path in the container


class NotThereYet(Exception):
    """A ConfigMap or Secret named by the pod does not exist (yet)."""


class PodFiles:
    """The mounts of one pod, as folders below `folder`; raises NotThereYet."""

    def __init__(self, api: Api, pod: Document, folder: Path) -> None:
        self._api = api
        self._folder = folder
        self._namespace = pod["metadata"]["namespace"]
        self._account = pod["spec"].get("serviceAccountName", "default")
        (container,) = pod["spec"]["containers"]
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        self.mounts: Folders = {}
        for mount in container.get("volumeMounts", []):
            volume = self._volume(volumes[mount["name"]])
            self.mounts[mount["mountPath"].rstrip("/")] = volume / mount.get("subPath", "")
        for mounted in set(self.mounts.values()):
            self._rewrite(mounted)
        self.mounts["/dev/termination-log"] = self.termination_log = folder / "termination-log"

    def here(self, text: str) -> str:
        """The text with each mount path replaced by that of this host: a pod has no own file system."""
        for path in sorted(self.mounts, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", str(self.mounts[path]), text)
        return text

    def variables(self, pod: Document, pod_ip: str) -> dict[str, str]:
        """The environment of the pod; raises NotThereYet for a missing Secret."""
        (container,) = pod["spec"]["containers"]
        fields = {
            "status.podIP": pod_ip,
            **{f"metadata.{name}": pod["metadata"][name] for name in ("name", "namespace", "uid")},
        }
        values = {}
        for variable in container.get("env", []):
            source = variable.get("valueFrom")
            if not source:
                values[variable["name"]] = variable.get("value", "")
            elif "fieldRef" in source:
                values[variable["name"]] = fields[source["fieldRef"]["fieldPath"]]
            elif "secretKeyRef" in source:
                wanted = source["secretKeyRef"]
                values[variable["name"]] = self._data("secrets", wanted["name"])[wanted["key"]].decode()
            else:
                wanted = source["configMapKeyRef"]
                values[variable["name"]] = self._data("configmaps", wanted["name"])[wanted["key"]].decode()
        return {name: self.here(value) for name, value in values.items()}

    def _volume(self, volume: Document) -> Path:
        folder = Path(self._folder, "volumes", volume["name"])
        folder.mkdir(parents=True, exist_ok=True)
        if projected := volume.get("projected"):
            for source in projected["sources"]:
                self._source(folder, source)
        else:
            self._source(folder, volume)
        return folder

    def _source(self, folder: Path, source: Document) -> None:
        if secret := source.get("secret"):
            name = secret.get("secretName") or secret["name"]
            _write(folder, self._data("secrets", name, secret.get("optional")), secret.get("items"))
        elif config := source.get("configMap"):
            data = self._data("configmaps", config["name"], config.get("optional"))
            _write(folder, data, config.get("items"))
        elif account := source.get("serviceAccountToken"):
            path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{self._account}/token"
            (folder / account["path"]).write_text(self._api.create(path, {})["status"]["token"], "utf-8")
        elif source.get("downwardAPI"):
            (folder / "namespace").write_text(self._namespace, "utf-8")
        elif "emptyDir" not in source:
            raise NotImplementedError(f"the test kubelet does not support volumes such as {source}")

    def _data(self, kind: str, name: str, optional: bool | None = None) -> dict[str, bytes]:
        try:
            found = self._api.get(f"/api/v1/namespaces/{self._namespace}/{kind}/{name}")
        except ApiError as error:
            if optional:
                return {}
            raise NotThereYet(f"{kind} {name}: {error}") from error
        encoded = found.get("data") or {}
        if kind == "configmaps":
            binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
            return {key: value.encode() for key, value in encoded.items()} | binary
        return {key: base64.b64decode(value) for key, value in encoded.items()}

    def _rewrite(self, folder: Path) -> None:
        for file in filter(Path.is_file, folder.rglob("*")):
            try:
                text = file.read_text("utf-8")
            except UnicodeDecodeError:
                continue
            file.write_text(self.here(text), "utf-8")


def _write(folder: Path, data: Mapping[str, bytes], items: Iterable[Mapping[str, Any]] | None) -> None:
    paths = {item["key"]: item["path"] for item in items} if items else {key: key for key in data}
    for key, path in paths.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data[key])
