"""Callbacks: reports the events of jobs to receivers over HTTP."""
