"""Warm servers: a JVM that stays running for small SQL jobs, and the drivers in it."""
