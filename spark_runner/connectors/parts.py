"""The sources and sinks of a script in the driver."""

from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.base import Sink, Source
from spark_runner.connectors.errors import ConnectorError, NotInstalled
from spark_runner.connectors.files.sink import FileSink
from spark_runner.connectors.registry import Connector, find, load


class Parts:
    """The source and the sink of each connector, made when they are used first.

    `given` are the connectors of other packages, as the worker wrote them into the plan: a driver on a
    cluster has the modules of a package, and not its entry points.
    """

    def __init__(self, given: Mapping[str, Mapping[str, Any]]) -> None:
        self._given = given
        self._made: dict[str, Any] = {}

    def can_read(self, connector: str) -> bool:
        """Whether the connector has a source."""
        return bool(self._connector(connector).source)

    def source(self, connector: str) -> Source:
        """The source; raises ConnectorError without one."""
        source: Source = self._part(self._connector(connector).source, connector, "read")
        return source

    def sink(self, connector: str) -> Sink:
        """The sink; raises ConnectorError without one."""
        sink: Sink = self._part(self._connector(connector).sink, connector, "written")
        return sink

    def writes_files(self, connector: str) -> bool:
        """Whether the sink adds files to a directory, which readers find by its path."""
        part = self._connector(connector).sink
        return bool(part) and isinstance(self.sink(connector), FileSink)

    def _connector(self, name: str) -> Connector:
        given = self._given.get(name)
        found = find(name) if given is None else Connector.from_json(given)
        if found is None:
            raise NotInstalled(name)
        return found

    def _part(self, part: str, connector: str, verb: str) -> Any:
        if not part:
            raise ConnectorError(f"connector '{connector}' cannot be {verb}")
        if part not in self._made:
            self._made[part] = load(part)()
        return self._made[part]
