"""Finds an INSERT that a changed script has moved into a statement set, or out of one.

Its query has another checkpoint then, which is empty: the INSERT would write all rows once more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.folders import Folders
from spark_runner.sql.checkpoints.listing import has_begun
from spark_runner.sql.checkpoints.record import RECORD, DamagedRecord, Record
from spark_runner.sql.execution.folder_names import SET_MARK, folder_name


def check_not_moved(
    folders: Folders, url: str, targets: Iterable[str], used: Mapping[str, Counter[str]]
) -> None:
    """Raise ConnectorError if the checkpoint `url` is empty, and another one counts rows of the same targets.

    `used` has the folders of all queries of the script with the targets of each, as names of folders: a
    target that a query still has is there for an INSERT of its own. One of the two is that of a set: an
    INSERT outside of sets has the folder of its target.
    """
    if has_begun(folders, url):
        return
    place, _, own = url.rpartition("/")
    names = {folder_name(target) for target in targets}
    for name in folders.names(place) or ():
        if name.startswith(".") or name == own or not (SET_MARK in name or SET_MARK in own):
            continue
        other = f"{place}/{name}"
        left = _targets(folders, other, name) - used.get(name, Counter[str]())
        if not names.isdisjoint(left) and has_begun(folders, other):
            raise ConnectorError(
                "refused: the script has moved this INSERT into a statement set, out of one, or behind"
                f" another first INSERT of it, and the checkpoint '{other}' counts its rows so far; submit"
                " the job with --fresh to read all data again, with --from POSITION to begin there, or move"
                " it back"
            )


def _targets(folders: Folders, url: str, name: str) -> Counter[str]:
    """The targets that a checkpoint counts rows of, as names of folders."""
    if SET_MARK not in name:
        return Counter([name.partition(",")[0]])
    try:
        text = folders.read(f"{url}/{RECORD}")
        return Counter(folder_name(each) for each in Record.of(text, url).targets) if text else Counter()
    except DamagedRecord:
        return Counter()
