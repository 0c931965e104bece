"""Views of jobs and queues, and the operations of an operator on them."""
