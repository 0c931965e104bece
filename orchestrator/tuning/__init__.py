"""Tuning: resources of the next run of a job, from the history of its runs."""
