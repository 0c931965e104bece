"""Drains a spool in a separate process, and prints the memory used: arguments root, url, alias."""

import json
import sys
from pathlib import Path

_MIB = 1024


def _peak_kib() -> int:
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    """Measure a process that logs, and then the same process with a shipper."""
    import orchestrator.logs.pipeline  # noqa: F401, PLC0415 - the import is measured
    from orchestrator.logs.spool.writer import Spool  # noqa: PLC0415 - likewise

    root, url, alias = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    spool = Spool(root)
    before = _peak_kib()

    from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget  # noqa: PLC0415 - likewise
    from orchestrator.logs.shipping.http import Http  # noqa: PLC0415 - likewise
    from orchestrator.logs.shipping.shipper import Shipper  # noqa: PLC0415 - likewise

    shipper = Shipper(root, ElasticsearchTarget(Http([url]), alias), spool=spool)
    shipper.adopt()
    shipper.start()
    drained = shipper.close(900)
    spool.close(remove=drained)
    more = (_peak_kib() - before) / _MIB
    print(json.dumps({"more_mib": round(more, 1), "documents": shipper.counts.created, "drained": drained}))


if __name__ == "__main__":
    main()
