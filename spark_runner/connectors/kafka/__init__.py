"""Topics of Apache Kafka, by Spark's own source and sink."""
