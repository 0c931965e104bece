"""Log records on this host's disk until they are delivered: one folder of segments per process."""
