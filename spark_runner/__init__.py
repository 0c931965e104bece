"""How a Spark driver is started, watched and stopped, and what runs inside it."""
