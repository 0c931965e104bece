"""The work of benchmarks/start.py: the SQL of examples/flights.sql on one month, as jobs and for the peer."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource

EXAMPLES = Path(__file__).parent.parent / "examples"
PEER = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for step in json.load(open(sys.argv[1])):
    if step["kind"] == "set":
        spark.conf.set(step["key"], step["value"])
    elif step["kind"] == "read":
        spark.read.parquet(step["path"]).createOrReplaceTempView(step["name"])
    elif step["kind"] == "view":
        spark.sql(step["query"]).createOrReplaceTempView(step["name"])
    else:
        spark.sql(step["query"]).write.mode("overwrite").format(step["format"]).save(step["path"])
spark.stop()
"""


def small_input(folder: Path) -> Path:
    """The script and its input, of one month."""
    (folder / "data").mkdir(parents=True)
    for path in (EXAMPLES / "data").glob("*.parquet"):
        shutil.copy(path, folder / "data")
    flights = pyarrow.parquet.read_table(folder / "data" / "flights.parquet")
    january = flights.filter(pyarrow.compute.equal(flights["month"], 1))
    pyarrow.parquet.write_table(january, folder / "data" / "flights.parquet")
    return Path(shutil.copy(EXAMPLES / "flights.sql", folder))


def peer_steps(script: Path) -> list[dict[str, str]]:
    """The same statements for plain PySpark."""
    text = script.read_text("utf-8")
    plan = compile_script(text, file=script.name, base_dir=str(script.parent), variables={})
    source, tables, steps = ScriptSource(script.name, text), {}, []
    for step in plan["steps"]:
        if step["kind"] == "set":
            steps.append({"kind": "set", "key": step["key"], "value": step["value"]})
        elif step["kind"] == "table":
            tables[step["name"]] = step
            if not step["written"]:
                steps.append({"kind": "read", "name": step["name"], "path": step["location"]})
        else:
            query = Passage.from_json(source, step["query"], plan["values"]).text
            if step["kind"] == "view":
                steps.append({"kind": "view", "name": step["name"], "query": query})
            else:
                target = tables[step["target"]]
                steps.append(
                    {
                        "kind": "insert",
                        "query": query,
                        "path": f"{target['location']}-peer",
                        "format": target["connector"],
                    }
                )
    return steps


@dataclass
class Work:
    """The same SQL as jobs with separate JVMs, as a job with the default start, and for the peer."""

    jobs: list[Path]
    in_server: Path
    peer: Path
    steps: list[Path]

    @classmethod
    def prepare(cls, folder: Path, start: str) -> "Work":
        """Prepare four copies, each with its own input and targets."""
        folders = [small_input(folder / f"job-{number}").parent for number in range(4)]
        for each in folders:
            job = {"name": "flights", "script": "flights.sql", "spark": {"start": start}}
            (each / "job.yaml").write_text(json.dumps(job), "utf-8")
            (each / "peer.json").write_text(json.dumps(peer_steps(each / "flights.sql")), "utf-8")
        in_server, peer = folders[0] / "warm.yaml", folder / "peer.py"
        in_server.write_text(json.dumps({"name": "flights", "script": "flights.sql"}), "utf-8")
        peer.write_text(PEER, "utf-8")
        return cls(
            [each / "job.yaml" for each in folders], in_server, peer, [f / "peer.json" for f in folders]
        )
