"""The suite that each connector passes for what it declares."""
