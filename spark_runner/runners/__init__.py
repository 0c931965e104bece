"""One file per place where a driver can run, behind the Protocol in `base`."""
