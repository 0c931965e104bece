"""The jobs of the real loop in `benchmarks/tuning.py`: programs whose memory grows with their input."""

AGGREGATE = """
import sys
from pyspark.sql import SparkSession, functions as f

rows = int(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
source = spark.range(rows).select(
    (f.col("id") % (rows // 8)).alias("key"), f.sha2(f.col("id").cast("string"), 256).alias("text")
)
found = source.groupBy("key").agg(f.collect_list("text").alias("texts"), f.count("*").alias("number"))
found.write.format("noop").mode("overwrite").save()
"""

CACHED_JOIN = """
import sys
from pyspark.sql import SparkSession, functions as f

rows = int(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
source = spark.range(rows).select(
    f.col("id").alias("key"), f.sha2(f.col("id").cast("string"), 512).alias("text")
).cache()
source.count()
other = source.select((f.col("key") * 7 % rows).alias("key"), f.substring("text", 1, 32).alias("part"))
for _ in range(2):
    source.join(other.hint("shuffle_hash"), "key").write.format("noop").mode("overwrite").save()
"""

PYTHON_UDF = """
import sys
from pyspark.sql import SparkSession, functions as f

rows = int(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
weights = spark.sparkContext.broadcast({number: str(number) * 4 for number in range(rows // 4)})

@f.udf("string")
def scored(key):
    return weights.value.get(key % len(weights.value), "") + str(key)

source = spark.range(rows).select(f.col("id").alias("key"), scored("id").alias("text"))
source.groupBy(f.substring("text", 1, 6).alias("group")).agg(f.max("text")).write.format("noop").mode(
    "overwrite"
).save()
"""

JOBS = {
    "aggregate": (AGGREGATE, 1_500_000),
    "cached_join": (CACHED_JOIN, 700_000),
    "python_udf": (PYTHON_UDF, 800_000),
}
"""By name: the program, and the rows that it reads at first."""
