"""Exit codes of a driver that describe the attempt rather than the job."""

NO_CONTACT = 69  # EX_UNAVAILABLE: ZooKeeper did not answer at the start, or for longer than the lease
SUPERSEDED = 75  # EX_TEMPFAIL: another driver has the attempt, or it was closed; never a verdict
HEAP_FULL = 52  # SparkExitCode.OOM: Spark ends its JVM so, and with it our driver
KILLED = 143  # as after SIGTERM
