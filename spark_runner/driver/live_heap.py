"""The heap of a JVM after its collections: what a program keeps, without the garbage of a large heap."""

from typing import Any


class LiveHeap:
    """The largest heap after a collection that was seen; used by one thread. Raises errors of py4j.

    A collector reports its last collection only, with all pools of the heap after it: also with the old
    generation, which a young collection does not empty. So it is an upper bound of what the program keeps.
    """

    def __init__(self, jvm: Any) -> None:
        factory = jvm.java.lang.management.ManagementFactory
        self._collectors = list(factory.getGarbageCollectorMXBeans())
        pools = factory.getMemoryPoolMXBeans()
        self._pools = [pool.getName() for pool in pools if pool.getType().name() == "HEAP"]
        self._counts = [0] * len(self._collectors)
        self._peak: int | None = None

    def peak(self) -> int | None:
        """Look at the last collections; returns the largest heap after one, in bytes, None before any."""
        for index, collector in enumerate(self._collectors):
            count = collector.getCollectionCount()
            if count == self._counts[index]:
                continue
            self._counts[index] = count
            last = collector.getLastGcInfo()  # of com.sun.management; None until the first has ended
            if last is not None:
                used = last.getMemoryUsageAfterGc()
                live = sum(usage.getUsed() for name in self._pools if (usage := used.get(name)) is not None)
                self._peak = max(self._peak or 0, int(live))
        return self._peak
