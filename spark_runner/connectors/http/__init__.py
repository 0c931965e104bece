"""HTTP: a request for each row or batch of rows, and pages of JSON as rows."""
