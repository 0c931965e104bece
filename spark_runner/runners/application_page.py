"""The web page of an application at its cluster manager, for running and ended applications."""

from spark_runner.runners.base import SubmissionPlace


def application_page(place: SubmissionPlace, application_id: str | None) -> str | None:
    """The URL at the master or the ResourceManager; None if no manager has a page for it.

    With several masters, it is the page at the first. A standby ResourceManager redirects to the active one.
    """
    if not application_id:
        return None
    match place.backend:
        case "standalone":
            return _first(place, "ui", f"/app/?appId={application_id}")
        case "yarn":
            return _first(place, "resource_manager", f"/cluster/app/{application_id}")
        case _:
            return None


def _first(place: SubmissionPlace, name: str, path: str) -> str | None:
    address = str(place.cluster.get(name, "")).partition(",")[0].rstrip("/")
    return f"{address}{path}" if address else None
