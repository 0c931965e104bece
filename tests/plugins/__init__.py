"""Plugins of pytest: the kinds of tests, their groups, and the timings of a run."""
