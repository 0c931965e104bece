"""Archives of loaded classes (AppCDS), with which a driver's JVM starts in less than half of the time."""
