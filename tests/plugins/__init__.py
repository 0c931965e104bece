"""Plugins of pytest: what each test needs, where it runs, and what a run took."""
