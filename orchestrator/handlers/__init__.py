"""One handler per queue: what is done with a job that stands there, and where it goes next."""
