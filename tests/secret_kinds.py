"""The kinds of secrets that tests plant: by kind, a text with a secret, and the secret part.

All are made up. Each text has one or more lines, as in logs, commands, settings and messages.
"""

import base64
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """`text` contains `secret`; `lines` are the parts of a secret of several lines."""

    text: str
    secret: str

    @property
    def traces(self) -> list[str]:
        """Texts that must not be found anywhere: the secret, or each line of a secret of several lines."""
        return [line for line in self.secret.splitlines() if line]


def _word(name: str) -> str:
    return f"{name.replace('-', '')}Zx9kQw7tR2mP4vB8"


_PEM = "\n".join(
    base64.b64encode(f"{name} of the key, line {name}, that is none".encode()).decode()[:64] for name in "abc"
)
_JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJub2JvZHkifQ.c2lnbmF0dXJlLW9mLW5vYm9keQ"
_BASIC = base64.b64encode(b"ada:Zx9kQw7tR2mP4vB8").decode()

KINDS: dict[str, Kind] = {
    "password": Kind(f"password={_word('plain')}", _word("plain")),
    "passwd in YAML": Kind(f"db.passwd: {_word('yaml')}", _word("yaml")),
    "_PASS": Kind(f"MYSQL_PASS={_word('pass')}", _word("pass")),
    "_PWD": Kind(f"DB_PWD={_word('pwd')}", _word("pwd")),
    "passphrase": Kind(f"ssl.key.passphrase = '{_word('phrase')}'", _word("phrase")),
    "password in JSON": Kind(f'{{"user": "ada", "password": "{_word("json")} x"}}', _word("json")),
    "password in quoted JSON": Kind(f'{{\\"password\\": \\"{_word("nested")}\\"}}', _word("nested")),
    "password in SQL": Kind(f"OPTIONS ('user' 'ada', 'password' = '{_word('sql')}')", _word("sql")),
    "environment": Kind(f"environ({{'HOME': '/', 'APP_SECRET': '{_word('environ')}'}})", _word("environ")),
    "pod environment": Kind(f'{{"name": "APP_PASSWORD", "value": "{_word("pod")}"}}', _word("pod")),
    "command line": Kind(f"tool --user ada --db-password {_word('argv')} -v", _word("argv")),
    "Scala pair": Kind(f"ArrayBuffer((spark.ssl.keyPassword,{_word('scala')}))", _word("scala")),
    "URI": Kind(f"amqp://ada:{_word('uri')}@host:5672/x", _word("uri")),
    "URI without user": Kind(f"redis://:{_word('redis')}@host:6379/0", _word("redis")),
    "JDBC": Kind(f"jdbc:postgresql://host/db?user=ada&password={_word('jdbc')}&ssl=true", _word("jdbc")),
    "Oracle": Kind(f"jdbc:oracle:thin:ada/{_word('oracle')}@//host:1521/x", _word("oracle")),
    "connection string": Kind(
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={_word('account')}==;", _word("account")
    ),
    "Azure SAS": Kind(
        f"https://a.blob.core.windows.net/c/b?sv=2024&sp=r&sig={_word('sas')}%3D", _word("sas")
    ),
    "Azure shared access key": Kind(
        f"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey={_word('bus')}=", _word("bus")
    ),
    "Azure client secret": Kind(f"AZURE_CLIENT_SECRET: {_word('client')}", _word("client")),
    "Azure account key": Kind(
        f"spark.hadoop.fs.azure.account.key.data.dfs.core.windows.net={_word('abfs')}==", _word("abfs")
    ),
    "S3A secret key": Kind(f"spark.hadoop.fs.s3a.secret.key={_word('s3a')}", _word("s3a")),
    "AWS access key": Kind("the key AKIAIOSFODNN7EXAMPLE is used", "AKIAIOSFODNN7EXAMPLE"),
    "AWS secret": Kind(f"aws_secret_access_key = {_word('aws')}/x+y", _word("aws")),
    "presigned URL": Kind(
        f"https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIAIOSFODNN7EXAMPL2%2F20260101"
        f"&X-Amz-Signature={_word('amz')}",
        _word("amz"),
    ),
    "Google service account": Kind(
        f'{{"type": "service_account", "private_key_id": "{_word("google")}", "client_email": "a@b"}}',
        _word("google"),
    ),
    "private key": Kind(f"-----BEGIN RSA PRIVATE KEY-----\n{_PEM}\n-----END RSA PRIVATE KEY-----", _PEM),
    "Authorization": Kind(f"Authorization: Bearer {_word('bearer')}", _word("bearer")),
    "basic login": Kind(f"sent with Basic {_BASIC}", _BASIC),
    "API key header": Kind(f"X-Api-Key: {_word('header')}", _word("header")),
    "cookie": Kind(f"Set-Cookie: session={_word('cookie')}; HttpOnly", _word("cookie")),
    "JWT": Kind(f"the claim {_JWT} is stale", _JWT),
    "GitHub": Kind(f"fetched with ghp_{_word('github')}{_word('')}", f"ghp_{_word('github')}"),
    "Slack": Kind(f"posted with xoxb-123-{_word('slack')}", f"xoxb-123-{_word('slack')}"),
    "Kafka": Kind(
        f'sasl.jaas.config=x.PlainLoginModule required username="ada" password="{_word("kafka")}";',
        _word("kafka"),
    ),
    "ZooKeeper": Kind(f"add_auth('digest', 'ada:{_word('zookeeper')}')", _word("zookeeper")),
    "ZooKeeper ACL": Kind(f"ACL(perms=31, id=Id(scheme='digest', id='ada:{_word('acl')}='))", _word("acl")),
    "two words of a command line": Kind(f"['tool', '--db-password', '{_word('words')}']", _word("words")),
    "Python pair": Kind(f"[('spark.x.secret', '{_word('pair')}')]", _word("pair")),
    "Scala map": Kind(f"Map(url -> x, password -> {_word('map')})", _word("map")),
    "argument by name": Kind(f"f(password => '{_word('arrow')}')", _word("arrow")),
    "coloured": Kind(f"\x1b[36mpassword\x1b[0m=\x1b[35m{_word('colour')}\x1b[0m", _word("colour")),
    "quote doubled in SQL": Kind(f"password = 'ab''{_word('doubled')}'", _word("doubled")),
    "in braces, with a semicolon": Kind(
        f"jdbc:sqlserver://h;password={{ab;{_word('braces')}}};x=y", _word("braces")
    ),
    "list": Kind(f"passwords=['ab', '{_word('list')}']", _word("list")),
    "XML": Kind(f"<name>fs.s3a.secret.key</name><value>{_word('xml')}</value>", _word("xml")),
    "pod environment in quoted JSON": Kind(
        f'{{\\"name\\":\\"APP_PASSWORD\\",\\"value\\":\\"{_word("podjson")}\\"}}', _word("podjson")
    ),
    "properties": Kind(f"\nspark.hadoop.fs.s3a.secret.key   {_word('defaults')}\n", _word("defaults")),
    "URL within a URL": Kind(f"?next=%2Flogin%3Fpassword%3D{_word('within')}%26x", _word("within")),
    "SAS as Go writes JSON": Kind(f'"https://a/b?sv=1\\u0026sig={_word("gojson")}"', _word("gojson")),
    "password with a slash": Kind(f"s3a://AKID:ab/{_word('slash')}@bucket/x", _word("slash")),
    "token as a user": Kind(f"https://{_word('cloned')}abcd@github.com/x", _word("cloned")),
    "registry": Kind(f'{{"auths":{{"r":{{"auth":"{_BASIC}"}}}}}}', _BASIC),
    "cookie in JSON": Kind(f'"Cookie": "session={_word("jar")}; x=y", ', _word("jar")),
    "encryption key": Kind(f"parquet.encryption.key={_word('parquet')}", _word("parquet")),
    "key of a kubeconfig": Kind(f"client-key-data: {_word('kubeconfig')}", _word("kubeconfig")),
    "keytab": Kind(f"KEYTAB_BASE64={_word('keytab')}", _word("keytab")),
    "camel case": Kind(f"keyStorePass={_word('camel')}", _word("camel")),
    "token of Vault": Kind(f"renewed hvs.{_word('vault')}", f"hvs.{_word('vault')}"),
    "webhook": Kind(f"https://hooks.slack.com/services/T0/B0/{_word('hook')}", _word("hook")),
    "SQL user": Kind(f"CREATE USER ada IDENTIFIED BY '{_word('grant')}'", _word("grant")),
}
