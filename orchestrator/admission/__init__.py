"""What may start here now: places of capped pools and names, load and memory of the host."""
