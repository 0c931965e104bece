"""Telling others how a job has ended."""
