"""Both sides of a driver: attempt, run plan, process identity, errors, exit codes and files."""
