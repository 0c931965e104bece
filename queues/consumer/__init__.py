"""The consumer loop: pools, backlog, rotation and membership."""
