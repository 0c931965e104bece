"""The addresses of the metadata services of clouds, which serve credentials: no definition may reach them."""

import ipaddress

_SERVICES = frozenset(
    map(
        ipaddress.ip_address,
        # Most clouds use 169.254.169.254, which is link-local.
        (
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:42::42",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
        ),
    )
)
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # NAT64, RFC 6052: the last four bytes are an IPv4 address


def is_metadata(address: str) -> bool:
    """Whether a socket address is a metadata address, or link-local; raises ValueError for a name."""
    known = plain_address(address)
    return known.is_link_local or known in _SERVICES


def is_loopback(address: str) -> bool:
    """Whether a socket address is this host; raises ValueError for a name."""
    known = plain_address(address)
    return known.is_loopback or known.is_unspecified


def plain_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address without its zone, and with embedded IPv4 unpacked; raises ValueError for a name."""
    known = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return known.ipv4_mapped
        if known.sixtofour is not None:
            return known.sixtofour
        if known in _TRANSLATED:
            return ipaddress.IPv4Address(known.packed[-4:])
    return known
