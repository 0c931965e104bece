"""Tables of relational databases, read and written through JDBC, and by COPY of PostgreSQL."""
