"""The history of jobs: measurements of the last fifty runs of each name, and log records of transitions."""
