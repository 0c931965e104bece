"""The functions that the platform offers to all scripts: by entry points of packages, and by a setting.

    [project.entry-points."spark_job_orchestrator.functions"]
    slug = "acme_functions:slug"

The name of the entry point is the name of the function in scripts.
"""

import sys
from collections.abc import Iterable, Mapping

from orchestrator.model.plan import Plan, called_functions

ENTRY_POINTS = "spark_job_orchestrator.functions"
"""The entry points of other packages: the name in scripts -> a function."""


def offered_functions(plan: Plan | None, setting: Mapping[str, str]) -> dict[str, str]:
    """The functions of the platform that a script calls, each as "module:attribute".

    `setting` has those of the operator, which win. The worker imports none of them.
    """
    called = called_functions(plan)
    if not called:
        return {}
    # Imported on first use: it takes as long as the rest of a command, and few scripts need it.
    from importlib.metadata import entry_points  # noqa: PLC0415 - few scripts need it

    points = {
        point.name.lower(): f"{point.module}:{point.attr}" for point in entry_points(group=ENTRY_POINTS)
    }
    known = points | {name.lower(): target for name, target in setting.items()}
    return {name: known[name] for name in called if name in known}


def packages_of(functions: Mapping[str, str]) -> Iterable[str]:
    """The top-level Python packages of functions, which must travel to driver and executors."""
    own = {target.partition(":")[0].partition(".")[0] for target in functions.values()}
    return own - sys.stdlib_module_names
