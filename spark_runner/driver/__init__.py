"""The program inside Spark: it takes the attempt, runs the job and records the outcome."""
