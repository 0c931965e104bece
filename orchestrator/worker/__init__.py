"""A worker: it claims jobs, looks at them, and lets go of them when told to stop."""
