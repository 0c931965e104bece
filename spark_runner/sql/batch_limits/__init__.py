"""How many rows one micro-batch of a stream reads at most, tuned while the stream runs."""
