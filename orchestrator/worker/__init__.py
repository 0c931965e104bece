"""A worker process: it claims jobs, dispatches them to handlers, and releases them when it stops."""
