"""The models of a job: the definition that a user writes, the state in its record, the view for users."""
