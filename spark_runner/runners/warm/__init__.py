"""The worker's side of warm servers: keeps them running, selects one for a job, clears dead drivers."""
