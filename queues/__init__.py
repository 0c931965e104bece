"""A distributed ID queue on ZooKeeper; it knows nothing of jobs or Spark."""
