"""One handler per queue: it reads a claimed job, acts on its driver, and returns the next action."""
