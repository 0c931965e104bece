"""Exit codes of a driver that say something about the attempt rather than about the job."""

NO_CONTACT = 69  # EX_UNAVAILABLE: ZooKeeper did not answer, or not for as long as the lease
SUPERSEDED = 75  # EX_TEMPFAIL: the attempt belongs to another driver, or was closed; never a verdict
KILLED = 143  # as after SIGTERM
