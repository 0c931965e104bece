"""Log records on disk until they are delivered: one folder of segments per process."""
