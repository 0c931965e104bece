"""The rights that docs/backends.md requires, as the tests grant them."""

DRIVER_RULES = [
    {
        "apiGroups": [""],
        "resources": ["pods", "services", "configmaps", "persistentvolumeclaims"],
        "verbs": ["create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"],
    },
]
"""For the service account of drivers: they create and delete their executors."""

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
"""For the account of a worker: spark-submit creates pods, services and ConfigMaps with it."""
