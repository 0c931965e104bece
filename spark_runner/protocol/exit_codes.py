"""Exit codes of a driver that describe the attempt rather than the job."""

NO_CONTACT = 69  # ZooKeeper did not answer at the start, or for longer than the lease (EX_UNAVAILABLE)
SUPERSEDED = 75  # another driver has the attempt, or it was closed; never a verdict (EX_TEMPFAIL)
HEAP_FULL = 52  # the heap of the JVM is full, so Spark stops it, and the driver (SparkExitCode.OOM)
KILLED = 143  # stopped by SIGTERM: the job was killed, or the host shuts down
