"""Opens the target of the settings. Its module is imported then, because most programs have no target."""

import logging
from typing import assert_never

from orchestrator.logs.errors import TargetRefuses
from orchestrator.logs.settings import LogSettings, TargetKind
from orchestrator.logs.shipping.target import LogTarget


def open_target(settings: LogSettings) -> LogTarget | None:
    """The target of the settings, None without one; raises TargetRefuses."""
    if not settings.urls:
        return None
    match settings.kind:
        case TargetKind.ELASTICSEARCH:
            return _elasticsearch(settings)
        case TargetKind.LOKI:
            return _loki(settings)
        case TargetKind.SLS:
            return _sls(settings)
        case never:
            assert_never(never)


def _elasticsearch(settings: LogSettings) -> LogTarget:
    from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget  # noqa: PLC0415 - see above
    from orchestrator.logs.shipping.http import http_of  # noqa: PLC0415 - see above

    return ElasticsearchTarget(http_of(settings), settings.alias)


def _loki(settings: LogSettings) -> LogTarget:
    from orchestrator.logs.shipping.http import Http  # noqa: PLC0415 - see above
    from orchestrator.logs.shipping.loki import LokiTarget, loki_headers  # noqa: PLC0415 - see above

    headers = loki_headers(settings.key_file, settings.tenant)
    return LokiTarget(Http(settings.urls, headers=headers, ca_file=settings.ca_file))


def _sls(settings: LogSettings) -> LogTarget:
    from orchestrator.logs.shipping.sls import SlsTarget, access_key  # noqa: PLC0415 - see above

    try:
        from orchestrator.logs.shipping.loghub import Loghub  # noqa: PLC0415 - see above
    except ImportError as error:
        raise TargetRefuses(
            "logs.kind is sls, but its SDK is not installed: pip install 'spark-job-orchestrator[sls]'"
        ) from error
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # the shipper reports failures
    loghub = Loghub(settings.urls[0], settings.project, settings.logstore, access_key(settings.key_file))
    return SlsTarget(loghub.put)
