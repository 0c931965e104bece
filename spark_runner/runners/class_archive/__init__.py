"""Archives of loaded classes (AppCDS) that let the JVM of a driver start in less than half of the time."""
