"""Warm servers as a worker sees them: kept running, chosen for jobs, freed of what a dead driver has left."""
