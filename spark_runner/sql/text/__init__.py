"""Text of scripts: tokens, passages with their place in the file, variables, and errors."""
