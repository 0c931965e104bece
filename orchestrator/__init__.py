"""Jobs: what they are, the states they pass, and who works on them."""
