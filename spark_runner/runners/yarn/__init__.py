"""YARN: each driver runs on this host (client mode) or in the first container of its application."""
