"""The channel between a driver and its tasks while they push: counts one way, limits the other way."""
