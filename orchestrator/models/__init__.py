"""What a job is: the definition that a user writes, the state that the queues carry, the view for people."""
