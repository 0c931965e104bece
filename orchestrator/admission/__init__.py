"""What may start here now: places of capped pools and names, pressure and memory of the host."""
