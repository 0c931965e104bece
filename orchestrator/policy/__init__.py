"""What operators allow definitions to use."""
