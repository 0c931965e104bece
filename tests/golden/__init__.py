"""Cases of scripts as data: a `.sql` file holds cases, the `.txt` file beside it what is expected of them."""
