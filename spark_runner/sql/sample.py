"""A script as short jobs have it: class archives hold the classes that it loads, warm servers rehearse it.

A worker compiles it and a driver runs it: the Python of a driver may have no compiler.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

_FOLDER = "/folder-of-the-sample"  # stands for the folder in which the driver runs it

SCRIPT = """
SET spark.sql.session.timeZone = UTC;
SET spark.sql.shuffle.partitions = 4;
CREATE TABLE numbers (n INT, name STRING) WITH ('connector' = 'inline', 'rows' = '[[1, "one"], [2, "two"]]');
CREATE TABLE items USING parquet OPTIONS (path 'items');
CREATE TABLE lines (n BIGINT, kind STRING, at TIMESTAMP, price DECIMAL(10, 2))
USING csv OPTIONS (path 'lines');
CREATE TABLE pages USING json OPTIONS (path 'pages');
CREATE TABLE totals (kind STRING, n BIGINT, mean DECIMAL(10, 2), place INT)
USING parquet OPTIONS (path 'totals');
CREATE TABLE days USING csv OPTIONS (path 'days');
CREATE TABLE shown USING print;

INSERT INTO lines
SELECT n, CONCAT('k', n % 7), TIMESTAMP '2024-01-01 00:00:00' + MAKE_DT_INTERVAL(0, n), n / 3 FROM items;
INSERT INTO pages SELECT i.n, i.half, l.name FROM items i JOIN numbers l ON i.n = l.n;
CREATE VIEW joined AS
SELECT l.*, p.name, i.half > 10 OR COALESCE(i.half, 0) >= 30 AS high
FROM lines l JOIN items i ON l.n = i.n LEFT JOIN pages p ON p.n = l.n;
INSERT INTO totals
WITH means AS (
  SELECT kind, COUNT(*) AS n, AVG(price) AS mean, AVG(price) FILTER (WHERE high) AS high_mean,
    PERCENTILE(price, 0.9) AS much, COUNT_IF(name IS NULL) AS nameless, MAX(UPPER(name)) AS name
  FROM joined WHERE kind <> 'k0' GROUP BY kind
)
SELECT kind, n, mean, RANK() OVER (ORDER BY mean DESC) FROM means ORDER BY kind;
INSERT OVERWRITE days
SELECT
  DATE_TRUNC('hour', at) AS hour, COUNT(DISTINCT kind) AS kinds, SUM(CASE WHEN high THEN 1.0D ELSE 0 END) AS s
FROM joined GROUP BY 1;
INSERT INTO shown SELECT kind, n FROM totals WHERE kind IN (SELECT kind FROM lines WHERE n < 5) LIMIT 3;
"""


@cache
def compiled_sample() -> Mapping[str, Any]:
    """The plan of the script, for `sample_below`."""
    from spark_runner.sql.compiler.compile import compile_script  # noqa: PLC0415 - workers alone have it

    plan = compile_script(SCRIPT, file="sample.sql", base_dir=_FOLDER, variables={})
    return dict(plan)


def sample_below(plan: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The plan with its tables below a folder."""
    inside = json.dumps(folder)[1:-1]  # quotes and backslashes as in a JSON string
    placed: dict[str, Any] = json.loads(json.dumps(plan).replace(_FOLDER, inside))
    return placed
