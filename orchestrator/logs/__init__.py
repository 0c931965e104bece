"""Logging: records of this process, their spool on disk, and their targets."""
