"""The rights that docs/backends.md asks an operator for, as the tests give them."""

DRIVER_RULES = [
    {
        "apiGroups": [""],
        "resources": ["pods", "services", "configmaps", "persistentvolumeclaims"],
        "verbs": ["create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"],
    },
]
"""For the service account of drivers: they make their executors and take them away."""

WORKER_RULES = [
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["create", "get", "list", "watch", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["services", "configmaps"], "verbs": ["create", "get", "patch"]},
    {
        "apiGroups": ["networking.k8s.io"],
        "resources": ["networkpolicies"],
        "verbs": ["create", "get", "patch"],
    },
    # It never reads a secret, not even its own.
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "deletecollection"]},
]
"""For whom a worker is: spark-submit makes pods, services and ConfigMaps in its name."""
