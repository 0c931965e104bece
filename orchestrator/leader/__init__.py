"""What one worker does for all: the election, and one duty per file."""
