"""Settings and their sources, the limits that change at run time, and defaults of Spark."""
