"""Where people look at an application: the page of the manager that knows it, also when it has ended."""

from spark_runner.runners.base import SubmissionPlace


def application_page(place: SubmissionPlace, application_id: str | None) -> str | None:
    """The URL at the master, or at the ResourceManager; None where no manager has a page of it.

    Of several masters it is the page of the first. A ResourceManager that stands by leads on to the active.
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
