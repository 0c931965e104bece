"""Paths of the nodes of the orchestrator outside the queues."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nodes:
    """Paths below the root of one orchestrator; `Layout` has those of items, tokens, locks and pools."""

    root: str

    @property
    def workers(self) -> str:
        """The folder of the workers' announcements."""
        return f"{self.root}/workers"

    def worker(self, name: str) -> str:
        """The ephemeral node in which a worker announces itself."""
        return f"{self.workers}/{name}"

    @property
    def leader(self) -> str:
        """The ephemeral node of the leader."""
        return f"{self.root}/leader"

    @property
    def term(self) -> str:
        """The node that each election writes: its version fences writes of an earlier leader."""
        return f"{self.config}/leader-term"

    @property
    def config(self) -> str:
        """The node with the limits of all workers; those of the pools are below it."""
        return f"{self.root}/config"

    @property
    def capped(self) -> str:
        """The folder of the capped pools."""
        return f"{self.root}/slots"

    def slots(self, pool: str) -> str:
        """The folder of the slots of a capped pool: one node per running job."""
        return f"{self.capped}/{pool}"

    def slot(self, pool: str, number: int) -> str:
        """The slot of one running job of a capped pool; it exists while the job runs, held or not."""
        return f"{self.slots(pool)}/{number}"

    @property
    def named(self) -> str:
        """The folder of the job names with a limit of running jobs."""
        return f"{self.root}/named"

    def name_slots(self, name: str) -> str:
        """The folder of the slots of one job name: one node per running job."""
        return f"{self.named}/{name}"

    def name_slot(self, name: str, number: int) -> str:
        """The slot of one running job of a name with limited `concurrency`."""
        return f"{self.name_slots(name)}/{number}"

    def water_reports(self, pool: str) -> str:
        """The folder of the workers whose jobs in a pool have reached its `high_water`."""
        return f"{self.root}/high-water/{pool}"

    def water_report(self, pool: str, worker: str) -> str:
        """The ephemeral node in which a worker reports the fullest of these jobs."""
        return f"{self.water_reports(pool)}/{worker}"

    @property
    def schedules(self) -> str:
        """The folder of the periodic jobs."""
        return f"{self.root}/schedules"

    def schedule(self, name: str) -> str:
        """The node of one periodic job."""
        return f"{self.schedules}/{name}"

    @property
    def connections(self) -> str:
        """The folder of the named connections of scripts."""
        return f"{self.root}/connections"

    def connection(self, name: str) -> str:
        """The node of one connection."""
        return f"{self.connections}/{name}"

    @property
    def adjustments(self) -> str:
        """The folder of the limits of pushes that are kept for the next job of a name."""
        return f"{self.root}/adjustments"

    def adjustment(self, name: str) -> str:
        """The node with those of one job name."""
        return f"{self.adjustments}/{name}"

    @property
    def positions(self) -> str:
        """The folder of how far the pushes of each job name have read their sources."""
        return f"{self.root}/positions"

    def position(self, name: str) -> str:
        """The node with those of one job name."""
        return f"{self.positions}/{name}"

    @property
    def audit(self) -> str:
        """The folder of the changes of operators that are not in a log spool yet."""
        return f"{self.root}/audit"

    def audit_entry(self, name: str) -> str:
        """The node of one such change."""
        return f"{self.audit}/{name}"

    @property
    def histories(self) -> str:
        """The folder of the resource usage of the last runs of each name."""
        return f"{self.root}/history"

    def history(self, name: str) -> str:
        """The ring of the last runs of one name."""
        return f"{self.histories}/{name}"

    @property
    def tunings(self) -> str:
        """The folder of the decisions about the resources of each name."""
        return f"{self.root}/tuning"

    def tuning(self, name: str) -> str:
        """The node with the last decisions for one name, and what operators have set for it."""
        return f"{self.tunings}/{name}"
