"""A real ZooKeeper server and the real zkCli, run from the jars that PySpark ships."""
