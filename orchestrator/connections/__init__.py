"""Named connections: addresses, references to credentials, and defaults that tables of scripts share."""
