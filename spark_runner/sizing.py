"""The settings of Spark that determine the resources of a run."""

SIZING = (
    "spark.master",
    "spark.submit.deployMode",
    "spark.driver.cores",
    "spark.driver.memory",
    "spark.driver.memoryOverhead",
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.executor.pyspark.memory",
    "spark.cores.max",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.maxExecutors",
    "spark.memory.fraction",
    "spark.memory.offHeap.size",
    "spark.sql.shuffle.partitions",
    "spark.task.cpus",
)

MAX_VALUE_CHARACTERS = 80  # of one setting, whose value is the user's
