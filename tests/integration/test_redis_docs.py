"""The script of docs/connectors/redis.md."""

import json
import re
from pathlib import Path

from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.execution import execute
from tests.servers.redis import RedisServer

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "redis.md").read_text("utf-8")


def test_the_worked_script_runs_again_and_again(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    (script,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    script = script.replace("'docs-", f"'{redis_keys}-")
    variables = {"host": redis_server.host, "port": str(redis_server.port)}
    found = check_script(script, file="docs.sql", base_dir=str(tmp_path), variables=variables)
    assert found.errors == found.warnings == ()
    for _ in range(2):
        results = execute(spark, json.loads(json.dumps(found.plan)), lambda _phase: None)
        assert [each["rows"] for each in results] == [3, 2, 2]
    with redis_server.client() as client:
        assert len(list(client.scan_iter(f"{redis_keys}-visits:*"))) == 3
        shown = client.get(f"{redis_keys}-visits:home:2026-01-02")
        assert shown == '{"page":"home","day":"2026-01-02","visits":7}'
        assert 0 < client.ttl(f"{redis_keys}-visits:home:2026-01-02") <= 86_400
        assert client.zrange(f"{redis_keys}-ranks", 0, -1, withscores=True) == [("shop", 3.0), ("home", 12.0)]
    rows = spark.read.json(f"{tmp_path}/home").orderBy("day").collect()
    assert [(row.day, row.visits) for row in rows] == [("2026-01-02", 7), ("2026-01-03", 5)]
