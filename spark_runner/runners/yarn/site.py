"""Reads Hadoop's configuration of a YARN cluster: the addresses of its ResourceManagers."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from spark_runner.protocol.errors import BackendUnreachable, NotConfigured, SubmissionError
from spark_runner.runners.http_json import CONNECT_SECONDS, refuses
from spark_runner.runners.yarn.api import ResourceManager
from spark_runner.runners.yarn.launch import run_tag

CONF_DIR_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")  # in spark-submit's order
_FILES = ("core-site.xml", "yarn-site.xml")  # if both set a property, the later file counts
_REFERENCE = re.compile(r"\$\{([^${}\s]+)\}")
_DEEPEST_REFERENCE = 20  # as Hadoop's own Configuration
_PREFIX = "yarn.resourcemanager"
_HTTP_PORT, _HTTPS_PORT, _RPC_PORT = 8088, 8090, 8032  # Hadoop's defaults


def conf_dir(environment: Mapping[str, str]) -> Path:
    """The folder of Hadoop's configuration; raises NotConfigured if none is named or it does not exist."""
    for variable in CONF_DIR_VARIABLES:
        if folder := environment.get(variable):
            if not (path := Path(folder)).is_dir():
                raise NotConfigured(f"{variable} is {folder}, which is not a folder: correct it")
            return path
    raise NotConfigured("YARN is not configured: set HADOOP_CONF_DIR to the folder with yarn-site.xml")


def read_configuration(folder: Path) -> dict[str, str]:
    """The properties of the folder's core-site.xml and yarn-site.xml; raises NotConfigured."""
    raw: dict[str, str] = {}
    for name in _FILES:
        try:
            root = ET.parse(folder / name).getroot()  # noqa: S314 - the operator's own file
        except FileNotFoundError:
            continue
        except (OSError, ET.ParseError) as error:
            raise NotConfigured(f"{folder / name} cannot be read: {error}") from error
        for entry in root.iter("property"):
            key, value = entry.findtext("name"), entry.findtext("value")
            if key and value is not None:
                raw[key.strip()] = value.strip()
    if not raw:
        raise NotConfigured(
            f"{folder} has no configuration of YARN: add a yarn-site.xml with the ResourceManager"
        )
    return {key: _expanded(raw, value) for key, value in raw.items()}


def resource_manager_urls(folder: Path) -> list[str]:
    """The web addresses of all ResourceManagers, such as `http://rm1:8088`; raises NotConfigured.

    Rules: YARN's "ResourceManager High Availability", with `yarn.http.policy` for https.
    """
    properties = read_configuration(folder)
    secure = properties.get("yarn.http.policy", "").upper() == "HTTPS_ONLY"
    urls = [url for suffix in _suffixes(properties) if (url := _url(properties, suffix, secure=secure))]
    if not urls:
        raise NotConfigured(
            f"{folder} names no ResourceManager: yarn-site.xml needs {_PREFIX}.hostname or .webapp.address"
        )
    return urls


def submission_addresses(folder: Path) -> list[str]:
    """The addresses, as host:port, at which spark-submit finds the ResourceManagers; raises NotConfigured.

    Empty if Hadoop reaches them through a proxy or its own sockets, which cannot be tested from here.
    """
    properties = read_configuration(folder)
    if properties.get("hadoop.rpc.socket.factory.class.default") or properties.get("hadoop.socks.server"):
        return []
    found = []
    for suffix in _suffixes(properties):
        address = properties.get(f"{_PREFIX}.address{suffix}", "")
        if not address and (host := properties.get(f"{_PREFIX}.hostname{suffix}", "")):
            address = f"{host}:{_RPC_PORT}"
        found += [address] if ":" in address else []
    return found


def needs_kerberos(folder: Path) -> bool:
    """Whether the web services of the cluster require SPNEGO, which is not supported."""
    properties = read_configuration(folder)
    kind = properties.get("hadoop.http.authentication.type", "simple")
    return kind.lower() == "kerberos"


def _suffixes(properties: Mapping[str, str]) -> list[str]:
    """The suffixes of the properties that exist once for each ResourceManager."""
    if properties.get(f"{_PREFIX}.ha.enabled", "").lower() != "true":
        return [""]
    names = properties.get(f"{_PREFIX}.ha.rm-ids", "").split(",")
    return [f".{name.strip()}" for name in names if name.strip()]


def _url(properties: Mapping[str, str], suffix: str, *, secure: bool) -> str:
    key = f"{_PREFIX}.webapp.https.address" if secure else f"{_PREFIX}.webapp.address"
    port = _HTTPS_PORT if secure else _HTTP_PORT
    address = properties.get(f"{key}{suffix}", "")
    if not address and (host := properties.get(f"{_PREFIX}.hostname{suffix}", "")):
        address = f"{host}:{port}"
    if not address:
        return ""
    if ":" not in address:
        address = f"{address}:{port}"
    return f"{'https' if secure else 'http'}://{address}"


def _expanded(properties: Mapping[str, str], value: str) -> str:
    """The value with `${name}` and `${env.NAME}` replaced; undefined references stay unchanged."""

    def replacement(found: re.Match[str]) -> str:
        name = found[1]
        if name.startswith("env."):
            variable, _, default = name.removeprefix("env.").partition(":-")
            return os.environ.get(variable, default or found[0])
        return properties.get(name, found[0])

    for _ in range(_DEEPEST_REFERENCE):
        expanded = _REFERENCE.sub(replacement, value)
        if expanded == value:
            break
        value = expanded
    return value


def check_reach(manager: ResourceManager, run: str) -> None:
    """Raise SubmissionError unless a ResourceManager lists its applications and accepts connections."""
    try:
        manager.applications([run_tag(run)])
        _check_listens()
    except BackendUnreachable as error:
        raise SubmissionError(f"driver of run {run} not submitted: {error}") from error


def _check_listens() -> None:
    try:
        folder = conf_dir(os.environ)
        addresses = submission_addresses(folder)
    except NotConfigured:
        return  # spark-submit reports that itself
    troubles = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        why = refuses(host, port, CONNECT_SECONDS)
        if not why:
            return  # only the active one of several listens
        troubles.append(f"{address} does not answer: {why}")
    if troubles:
        raise BackendUnreachable(
            f"no ResourceManager accepts applications: {'; '.join(troubles)}; correct "
            f"yarn.resourcemanager.address in {folder / 'yarn-site.xml'}"
        )
