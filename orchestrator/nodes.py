"""Paths of the nodes that the orchestrator keeps beside those of the queues."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nodes:
    """Paths below the root of one orchestrator; those of items, tokens, locks and pools are in `Layout`."""

    root: str

    @property
    def workers(self) -> str:
        """The folder of the ephemerals of the workers."""
        return f"{self.root}/workers"

    def worker(self, name: str) -> str:
        """The ephemeral in which a worker says who and where it is."""
        return f"{self.workers}/{name}"

    @property
    def leader(self) -> str:
        """The ephemeral of the worker that does what must be done by one."""
        return f"{self.root}/leader"

    @property
    def term(self) -> str:
        """The node that each election writes: its version refuses what an earlier leader does too late."""
        return f"{self.config}/leader-term"

    @property
    def config(self) -> str:
        """The node with the settings that hold for all workers; the pools' limits are below it."""
        return f"{self.root}/config"

    @property
    def capped(self) -> str:
        """The folder of the capped pools."""
        return f"{self.root}/slots"

    def slots(self, pool: str) -> str:
        """The folder of the places of a capped pool: one node per running job."""
        return f"{self.capped}/{pool}"

    def slot(self, pool: str, place: int) -> str:
        """The node of one running job of a capped pool: there as long as it runs, whoever holds it."""
        return f"{self.slots(pool)}/{place}"

    @property
    def named(self) -> str:
        """The folder of the names whose running jobs are limited."""
        return f"{self.root}/named"

    def name_slots(self, name: str) -> str:
        """The folder of the places of one definition's name: one node per running job."""
        return f"{self.named}/{name}"

    def name_slot(self, name: str, place: int) -> str:
        """The node of one running job of a name whose `concurrency` is limited."""
        return f"{self.name_slots(name)}/{place}"

    @property
    def schedules(self) -> str:
        """The folder of the periodic jobs."""
        return f"{self.root}/schedules"

    def schedule(self, name: str) -> str:
        """The node of one periodic job."""
        return f"{self.schedules}/{name}"

    @property
    def audit(self) -> str:
        """The folder of the changes of operators that are not in a log spool yet."""
        return f"{self.root}/audit"

    def audit_entry(self, name: str) -> str:
        """The node of one such change."""
        return f"{self.audit}/{name}"

    @property
    def histories(self) -> str:
        """The folder of what the last runs of each name took."""
        return f"{self.root}/history"

    def history(self, name: str) -> str:
        """The ring of the last runs of one name."""
        return f"{self.histories}/{name}"
