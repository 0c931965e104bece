-- Delays of all flights that left New York City in 2013: files in, two results out.
--
--   orchestrator run examples/flights.sql
--   orchestrator run examples/flights.sql --set bad_visibility=1
--
-- Statements end with ';'. Paths are relative to this file. Results land below output/.

-- Settings of the Spark session. The zone matters where an instant is shown or cut into days.
SET spark.sql.session.timeZone = America/New_York;
SET spark.sql.shuffle.partitions = 4;


-- Sources ------------------------------------------------------------------------------------------------

-- A table is a name for external data: nothing is created, and the name ends with the script.
-- Columns are optional where the files contain their schema.
CREATE TABLE flights USING parquet OPTIONS (path 'data/flights.parquet');

CREATE TABLE airlines (carrier STRING, name STRING)
USING parquet OPTIONS (path 'data/airlines.parquet');

-- The same in the syntax of Flink.
CREATE TABLE weather WITH (
  'connector' = 'filesystem',
  'format'    = 'parquet',
  'path'      = 'data/weather.parquet'
);


-- Transformations ----------------------------------------------------------------------------------------

-- Each flight with its airline and the weather of its hour. `time_hour` is an instant, so the hour that
-- occurs twice at the end of summer time is unambiguous. A flight that never left has no dep_delay.
CREATE VIEW departures AS
SELECT
  f.carrier,
  a.name                              AS airline,
  f.hour,
  f.dep_delay,
  f.dep_delay IS NULL                 AS cancelled,
  w.precip > 0                                       -- inches of rain or snow
    OR w.visib < ${bad_visibility:-3}                -- miles; change it with --set bad_visibility=...
    OR COALESCE(w.wind_gust, 0) >= 30                -- miles per hour; only gusts are recorded
                                      AS bad_weather -- NULL where no weather was recorded
FROM flights f
JOIN airlines a ON a.carrier = f.carrier
LEFT JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour;


-- Targets ------------------------------------------------------------------------------------------------

-- Delays per carrier and scheduled hour, for programs: Parquet. INSERT OVERWRITE replaces what the last run
-- wrote, so a second run does no harm; INSERT INTO would add to it.
CREATE TABLE delays_by_carrier_hour
USING parquet OPTIONS (path 'output/delays_by_carrier_hour');

INSERT OVERWRITE delays_by_carrier_hour
SELECT
  carrier,
  airline,
  hour,
  COUNT(*)                                                    AS flights,
  COUNT_IF(cancelled)                                         AS cancelled,
  AVG(dep_delay)                                              AS mean_delay,
  PERCENTILE(dep_delay, 0.9)                                  AS delay_90_percent,
  AVG(CASE WHEN dep_delay > 15 THEN 1.0D WHEN dep_delay IS NOT NULL THEN 0.0D END) AS late_share
FROM departures
GROUP BY carrier, airline, hour;

-- The cost of bad weather for each carrier, for people: CSV. Where a target declares columns, the query must give
-- as many, and they are cast to these types.
CREATE TABLE carriers_in_bad_weather (
  place         INT,
  airline       STRING,
  flights       BIGINT,
  good_weather  DECIMAL(6, 2),   -- mean delay in minutes
  bad_weather   DECIMAL(6, 2),
  extra_minutes DECIMAL(6, 2)
)
WITH (
  'connector' = 'filesystem',
  'format'    = 'csv',
  'path'      = 'output/carriers_in_bad_weather'
);

INSERT OVERWRITE carriers_in_bad_weather
WITH means AS (
  SELECT
    airline,
    COUNT(*)                                        AS flights,
    AVG(dep_delay) FILTER (WHERE NOT bad_weather)   AS good,
    AVG(dep_delay) FILTER (WHERE bad_weather)       AS bad
  FROM departures
  WHERE NOT cancelled AND bad_weather IS NOT NULL
  GROUP BY airline
)
SELECT
  RANK() OVER (ORDER BY bad - good DESC) AS place, airline, flights, good, bad, bad - good
FROM means
ORDER BY place;
