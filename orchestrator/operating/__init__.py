"""What people do by hand, and what they look at."""
