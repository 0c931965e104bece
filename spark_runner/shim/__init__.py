"""The parent process of a local driver: its process group, exit file and log limits."""
