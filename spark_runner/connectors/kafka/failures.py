"""Errors of Kafka's clients in words that name the thing and what to do."""

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types

from spark_runner.connectors.errors import ConnectorError, Unreachable

_NO_TOPIC = ("UnknownTopicOrPartitionException", "not present in metadata")
_RULES = (  # words in the chain of causes -> the message, in this order
    (
        ("SaslAuthenticationException", "SaslException"),
        "the brokers at {servers} refuse the login; check username, password and sasl_mechanism",
    ),
    (
        ("PBES2",),
        "Java cannot decrypt ssl_key for {servers}; encrypt it by openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES",
    ),
    (
        ("InvalidConfigurationException", "Invalid PEM"),
        "no TLS with {servers}: {cause}; check ssl_ca, ssl_certificate, ssl_key, ssl_key_password",
    ),
    (
        ("SslAuthenticationException", "SSLHandshakeException", "SSLException", "PKIX"),
        "TLS with {servers} fails: {cause}; check ssl_ca, ssl_certificate, the broker's name, the port",
    ),
    (
        ("TopicAuthorizationException", "TOPIC_AUTHORIZATION_FAILED"),
        "this user has no permission for topic '{topic}' at {servers}; its administrator can grant it",
    ),
    (("GroupAuthorizationException",), "this user has no permission for its consumer group at {servers}"),
    (
        ("ClusterAuthorizationException", "TransactionalIdAuthorizationException"),
        "this user has no permission to do so at {servers}",
    ),
    (
        _NO_TOPIC,
        "topic '{topic}' does not exist at {servers}; create it first, or correct the option 'topic'",
    ),
    (("InvalidTopicException",), "'{topic}' is no name of a topic"),
    (
        ("RecordTooLargeException",),
        "a record is larger than topic '{topic}' takes: {cause}; raise max.request.size and its limit",
    ),
    (("No resolvable bootstrap urls",), "no host of {servers} has an address; correct bootstrap_servers"),
    (("Invalid url in bootstrap", "Invalid port in bootstrap"), "{cause}; bootstrap_servers is host:port"),
    (("ConfigException",), "a setting of the client is wrong: {cause}"),
    (
        ("TimeoutException", "DisconnectException", "BrokerNotAvailableException"),
        "no broker at {servers} answers in time; check the address, TLS and login",
    ),
)
_PASSING = tuple(
    words for words, _ in _RULES if words[0] in {"No resolvable bootstrap urls", "TimeoutException"}
)


class NoTopic(ConnectorError):
    """The brokers have no such topic."""


def explained(error: Exception, servers: str, topic: str) -> ConnectorError | None:
    """The error with a message for users; None for one that is not of Kafka's clients.

    Unreachable where a further attempt may succeed, NoTopic for a topic that is not there.
    """
    chain = _chain(error)
    text = "\n".join(chain)
    for words, message in _RULES:
        if any(word in text for word in words):
            named = [line for line in chain if any(word in line for word in words)]
            cause = named[-1].partition(": ")[2].split("\n")[0] or named[-1]
            kind = Unreachable if words in _PASSING else NoTopic if words == _NO_TOPIC else ConnectorError
            return kind(message.format(servers=servers, topic=topic, cause=cause))
    return None


def explained_or_passing(error: Exception, servers: str, topic: str) -> ConnectorError:
    """Likewise for an error of a request to the brokers; one without a rule is taken for one that passes."""
    return explained(error, servers, topic) or Unreachable(f"the brokers at {servers} failed: {error}")


def _chain(error: Exception) -> list[str]:
    """The class and the message of an error of Java and of each of its causes."""
    if not isinstance(error, Py4JJavaError):
        return [f"{type(error).__name__}: {error}"]
    found, cause = list[str](), error.java_exception
    while cause is not None:
        found.append(f"{cause.getClass().getName()}: {cause.getMessage()}")
        cause = cause.getCause()
    return found
