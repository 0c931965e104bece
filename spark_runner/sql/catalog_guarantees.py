"""What the writes of a script into tables of catalogs promise."""

from spark_runner.sql.grammar.statements import CATALOG_INSERTS, CatalogAction

_CHANGES = CATALOG_INSERTS | {CatalogAction.MERGE, CatalogAction.DELETE}


def guarantee_of_catalog(action: str, *, streams: bool, is_kept: bool = False) -> str:
    """What a write promises when an attempt runs again, in one sentence; empty for other statements.

    `streams`: the script has a mode that streams. `is_kept`: the table keeps the mark of the write.
    """
    if is_kept and action in _CHANGES:
        what = "the number of a micro-batch" if streams else "the write"
        return f"exactly once: a further attempt finds {what} in the table, and does not repeat it"
    match action:
        case CatalogAction.INSERT_INTO if streams:
            return "at least once: a micro-batch that a further attempt repeats adds its rows again"
        case CatalogAction.INSERT_INTO:
            return "at least once: a further attempt adds its rows again; MERGE INTO by a key does not"
        case CatalogAction.INSERT_OVERWRITE:
            return "the rows of the last attempt; the catalog decides whether readers see a part of them"
        case CatalogAction.MERGE | CatalogAction.DELETE:
            return "a further attempt runs it again, on the table as the earlier one has left it"
    return ""
