"""Values of a job: definition, state, statuses, schedule, limits, paths and errors."""
