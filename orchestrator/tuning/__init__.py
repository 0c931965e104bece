"""The resources of the next run, from the measurements of past runs of the same definition."""
