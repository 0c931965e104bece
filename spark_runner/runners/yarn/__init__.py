"""YARN: drivers on this host (client mode) or in the first container of their application (cluster mode)."""
