"""The parent of a local driver: standard library only; process group, exit file, limits of its log."""
