"""`make servers`: a Kafka and a PostgreSQL for docs/kafka-to-postgresql.md, until Ctrl-C.

Orders change in the topic `orders` all the time. `.servers` has the settings of the orchestrator for them.
"""

import json
import os
import random
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka_support import kafka_jars
from tests.servers.databases import DatabaseServer, driver_jars, local_postgres, postgres_at
from tests.servers.kafka import Kafka, start_kafka

CUSTOMERS = ("Ada", "Grace", "Alan", "Barbara", "Edsger")
NEXT = {"placed": ("paid", "paid", "cancelled"), "paid": ("sent",)}
FIRST, CHANGES_PER_SECOND = 1000, 20


@dataclass
class Orders:
    """The shop whose orders change."""

    random: random.Random
    states: dict[int, dict[str, str | int]] = field(default_factory=dict)

    def place(self) -> bytes:
        """A new order, as a record."""
        order: dict[str, str | int] = {
            "id": len(self.states) + 1,
            "customer": self.random.choice(CUSTOMERS),
            "amount": f"{self.random.randrange(100, 20_000) / 100:.2f}",
        }
        return self._record(order | {"status": "placed"})

    def change(self) -> bytes:
        """A change of an order, or a new one."""
        order = self.states[self.random.randrange(len(self.states)) + 1]
        following = NEXT.get(str(order["status"]))
        return self._record({**order, "status": self.random.choice(following)}) if following else self.place()

    def _record(self, order: dict[str, str | int]) -> bytes:
        self.states[int(order["id"])] = order
        return json.dumps(order | {"changed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}).encode()


@dataclass
class Tutorial:
    """The servers, and the settings for them."""

    kafka: Kafka
    database: DatabaseServer
    config: Path
    login: Path  # for psql

    def sets(self) -> list[str]:
        """The variables of the script."""
        url = f"jdbc:postgresql://127.0.0.1:{self.database.port}/{self.database.database}"
        return ["--set", f"kafka={self.kafka.servers}", "--set", f"database={url}"]


@contextmanager
def tutorial(folder: Path) -> Iterator[Tutorial]:
    """Start the servers; `folder` has their settings, readable by this user alone."""
    with ExitStack() as stack:
        data = Path(tempfile.mkdtemp(prefix="servers-"))
        stack.callback(shutil.rmtree, data, ignore_errors=True)
        kafka = start_kafka(data, stack)
        kafka.create("orders")
        database = postgres_at(stack.enter_context(local_postgres()), "shop")
        password = secrets.token_urlsafe(12)
        database.run(f"CREATE USER loader PASSWORD '{password}'; GRANT CREATE ON SCHEMA public TO loader")
        vault = folder / "secrets"
        vault.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(vault / "password", password)
        login = _write(folder / "pgpass", f"127.0.0.1:{database.port}:*:loader:{password}\n")
        text = f"[connector_jars]\nkafka = {_listed(kafka_jars())}\njdbc = {_listed(driver_jars())}\n\n"
        text += f"[references.secrets.shop]\nfolder = {json.dumps(str(vault))}\n"
        yield Tutorial(kafka, database, _write(folder / "orchestrator.toml", text), login)


def main() -> None:
    """Run the servers and change orders until Ctrl-C."""
    folder = Path(".servers").resolve()
    _say("Kafka and PostgreSQL start; Maven fetches Kafka the first time")
    with suppress(KeyboardInterrupt), tutorial(folder) as found:
        orders = Orders(random.Random())  # noqa: S311 - no secret
        found.kafka.produce("orders", [orders.place() for _ in range(FIRST)])
        at = f"-h 127.0.0.1 -p {found.database.port} -U loader {found.database.database}"
        _say(
            f"\nThe topic 'orders' has {FIRST} orders, and {CHANGES_PER_SECOND} changes come each second.\n"
            "In the other terminals:\n\n"
            f"  export ORCHESTRATOR_CONFIG={found.config}\n"
            f"  export SETS='{' '.join(found.sets())}'\n"
            f"  alias shop='PGPASSFILE={found.login} psql {at}'\n\n"
            "Ctrl-C ends both servers and removes their data."
        )
        while True:
            found.kafka.produce("orders", [orders.change() for _ in range(CHANGES_PER_SECOND)])
            time.sleep(1)


def _listed(jars: list[Path]) -> str:
    return json.dumps([str(jar) for jar in jars])


def _write(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text, "utf-8")
    os.chmod(file, 0o600)  # noqa: PTH101 - of a file that was there
    return file


def _say(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - what the user copies


if __name__ == "__main__":
    main()
