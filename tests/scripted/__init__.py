"""A backend that runs scripts instead of Spark, and outlives the workers that submit to it."""
