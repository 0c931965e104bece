"""Views of jobs and queues, and the admin operations on them."""
