"""A backend that runs scripts in place of Spark, and outlives the workers that submit to it."""
