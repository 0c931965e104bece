"""The settings that a script changes in its session of Spark."""

from pyspark.sql import SparkSession


class ScriptSettings:
    """Changes settings, and restores the values that the session had before the script.

    These include the settings of the driver (`spark_runner.sql.restrictions.session_settings`) and of the
    definition, which `unset` of Spark alone would replace by Spark's defaults.
    """

    def __init__(self, session: SparkSession) -> None:
        self._conf = session.conf
        self._before: dict[str, str | None] = {}  # by key; None where the session had Spark's default

    def set(self, key: str, value: str) -> None:
        """Change a setting; raises the errors of Spark for a key that cannot be changed, or a wrong value."""
        before = self._conf.get(key, None)
        self._conf.set(key, value)
        self._before.setdefault(key, before)

    def reset(self, key: str) -> None:
        """Restore the setting `key`, or all if it is empty; what the script has not changed stays."""
        for changed in [key] if key else list(self._before):
            if changed not in self._before:
                continue
            before = self._before.pop(changed)
            if before is None:
                self._conf.unset(changed)
            else:
                self._conf.set(changed, before)
