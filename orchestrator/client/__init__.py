"""The library API: connect, enqueue jobs, look at them, wait for them and stop them."""
