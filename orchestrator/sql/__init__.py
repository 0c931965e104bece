"""Tools that read SQL scripts without Spark: columns and their origins, flow of data, canonical form."""
