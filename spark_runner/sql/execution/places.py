"""The locations of a plan for one attempt: with the values of built-in variables, on this host, checked."""

from collections.abc import Iterable, Mapping
from typing import Any

from spark_runner.sql.locations import comparable
from spark_runner.sql.overlaps import Placed, SetPlaces, refused
from spark_runner.sql.text.built_ins import with_values
from spark_runner.sql.text.source import ScriptSource


def with_built_ins(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of one attempt; the worker has added `built_ins`, the values. Raises SqlError without one.

    `as_written` has the parts of the plan that are the same for each attempt and run.
    """
    source, values = ScriptSource(plan["file"], plan["source"]), plan.get("built_ins") or {}
    as_written = {part: plan[part] for part in ("steps", "values")}
    try:
        return {**plan, **with_values(as_written, values), "as_written": as_written}
    except KeyError as missing:
        message = f"the variable ${{{missing.args[0]}}} has no value here; run the script as a job"
        raise source.error(message, max(0, plan["source"].find(f"${{{missing.args[0]}"))) from missing


def on_this_host(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with relative paths made local, even where another file system such as HDFS is the default."""
    here, paths = list[Mapping[str, Any]](), dict[str, str]()
    for step in plan["steps"]:
        path = f"file:{step['location']}" if step.get("beside") else step.get("options", {}).get("path", "")
        if step["kind"] == "table":
            paths[step["name"].lower()] = path
        elif step["kind"] == "insert":  # it may have options of its own
            path = paths[step["target"].lower()]
        here.append(
            {**step, "options": {**step["options"], "path": path}}
            if "path" in step.get("options", ())
            else step
        )
    return {**plan, "steps": here}


def check_places(plan: Mapping[str, Any]) -> None:
    """Raise SqlError for an INSERT that would destroy input where locations have built-in variables."""
    steps = plan["steps"]
    if not any("reads" in step for step in steps):
        return
    tables: dict[str, Placed] = {}
    numbered: dict[int, Placed] = {}
    open_set: SetPlaces | None = None
    for number, step in enumerate(steps):
        match step["kind"]:
            case "table":
                location = step["location"]
                place = comparable(location) if location else ""
                placed = Placed.of(step["name"], location, place, step["options"])
                tables[step["name"].lower()] = numbered[number] = placed
            case "begin_set":
                open_set = SetPlaces()
            case "end_set":
                open_set = None
            case "insert":
                reads = [numbered[read] for read in step.get("reads", ())]
                if found := _refused(step, tables, reads, open_set):
                    source = ScriptSource(plan["file"], plan["source"])
                    raise source.error(found, source.offset(step["line"], step["column"]))


def _refused(
    step: Mapping[str, Any], tables: Mapping[str, Placed], reads: Iterable[Placed], open_set: SetPlaces | None
) -> str:
    target = tables[step["target"].lower()]
    found = refused(target, reads, tables.values() if step["overwrite"] else ())
    if not found and open_set is not None:
        found = open_set.add(target, reads, step["line"])
    return found
