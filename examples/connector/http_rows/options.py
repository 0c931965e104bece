"""The options of a table, checked before a job is submitted."""

from pydantic import Field

from spark_runner.connectors.options import ConnectorOptions


class HttpOptions(ConnectorOptions):
    """JSON records over HTTP: GET returns a list of them, POST takes a list."""

    only_adds = True
    url: str = Field(pattern=r"https?://\S+", description="address of the records")

    def place(self) -> str:
        """The address: a script that reads what it writes is refused."""
        return self.url
