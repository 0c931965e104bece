"""Cases of scripts as data: each `.sql` file holds cases, the `.txt` file beside it what is expected of them."""
