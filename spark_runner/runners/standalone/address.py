"""The addresses of a standalone cluster: its masters, and the web servers of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from spark_runner.protocol.errors import BackendUnreachable, RefusedSubmission
from spark_runner.runners.base import SparkTarget
from spark_runner.runners.http_json import CONNECT_SECONDS, refuses
from spark_runner.runners.standalone.api import Addresses, StandaloneMasters

_SCHEME = "spark://"
_REST_PORT = 6066
_PAGE_PORT = 8080


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """The addresses of one cluster's masters, each list in the same order."""

    master: str  # in Spark's form: spark://host:port,host:port
    pages: tuple[str, ...]
    rest: tuple[str, ...]

    @classmethod
    def of(cls, target: SparkTarget) -> Self:
        """The cluster of a definition; raises RefusedSubmission for lists of different lengths."""
        masters = target.master.removeprefix(_SCHEME).split(",")
        hosts = [address.rpartition(":")[0] for address in masters]
        pages = _urls(target.options.get("ui", ""), hosts, _PAGE_PORT)
        rest = _urls(target.options.get("rest", ""), hosts, _REST_PORT)
        for name, urls in (("ui", pages), ("rest", rest)):
            if len(urls) != len(masters):
                raise RefusedSubmission(
                    f"{target.master} has {len(masters)} masters, but `{name}` has {len(urls)} addresses: "
                    "give one for each master, in the same order"
                )
        return cls(target.master, pages, rest)

    @classmethod
    def at(cls, cluster: Mapping[str, str]) -> Self:
        """The cluster in the place of an attempt; raises KeyError if the place has another form."""
        return cls(cluster["master"], tuple(cluster["ui"].split(",")), tuple(cluster["rest"].split(",")))

    def to_json(self) -> dict[str, str]:
        """The form stored in the place of an attempt."""
        return {"master": self.master, "ui": ",".join(self.pages), "rest": ",".join(self.rest)}

    def masters(self) -> StandaloneMasters:
        """A client of its masters."""
        return StandaloneMasters([Addresses(*pair) for pair in zip(self.pages, self.rest, strict=True)])

    def check_listens(self) -> None:
        """Raise BackendUnreachable unless a master accepts connections at its address for drivers."""
        troubles = []
        for address in self.master.removeprefix(_SCHEME).split(","):
            host, _, port = address.rpartition(":")
            why = refuses(host, port, CONNECT_SECONDS)
            if not why:
                return
            troubles.append(f"{_SCHEME}{address} does not answer: {why}")
        raise BackendUnreachable(f"{'; '.join(troubles)}; correct `master` of the definition")


def _urls(given: str, hosts: list[str], port: int) -> tuple[str, ...]:
    addresses = [address.strip() for address in given.split(",")] if given else [f"{h}:{port}" for h in hosts]
    return tuple((address if "://" in address else f"http://{address}").rstrip("/") for address in addresses)
