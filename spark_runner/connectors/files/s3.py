"""Address and login of buckets of S3, as settings of Hadoop for one bucket in a session of Spark."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError

_SETTINGS = {
    "s3_endpoint": "endpoint",
    "s3_region": "endpoint.region",
    "s3_path_style": "path.style.access",
    "s3_access_key": "access.key",
    "s3_secret_key": "secret.key",
}
_BY_KEYS = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


def use_bucket(session: SparkSession, options: Mapping[str, Any]) -> None:
    """Let the session reach the bucket of a table.

    Raises ConnectorError if another table of the session has other options for this bucket: Hadoop opens a
    bucket once.
    """
    given = {setting: options[name] for name, setting in _SETTINGS.items() if options.get(name)}
    if not given:
        return
    if "access.key" in given:
        given["aws.credentials.provider"] = _BY_KEYS
    bucket = urlsplit(str(options["path"])).netloc
    for setting, value in given.items():
        key, text = f"fs.s3a.bucket.{bucket}.{setting}", "true" if value is True else str(value)
        if session.conf.get(key, text) != text:
            raise ConnectorError(f"another table of the script has another '{setting}' for bucket '{bucket}'")
        session.conf.set(key, text)
