"""Checks of this host before a first run, without ZooKeeper: programs, resources, directories, network."""
