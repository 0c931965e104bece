"""The command line, a thin layer over `client` and `worker`."""
