"""What operators change, as records that are made with the change and as documents of the log."""
