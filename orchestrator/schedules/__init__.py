"""Periodic jobs: the store of schedules in ZooKeeper, and the leader's duty to enqueue their runs."""
