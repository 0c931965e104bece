"""The door to the private directories of `queues`, for runners: a driver needs none of them."""

from queues.embedded.private_directory import UnsafeDirectory, check_files, is_ours, private_directory

__all__ = ["UnsafeDirectory", "check_files", "is_ours", "private_directory"]
