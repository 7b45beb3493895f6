"""Where the model's server is, and how a request to it begins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from mnemon.core import errors

HOST = re.compile(r"[a-zA-Z0-9._-]+|[0-9a-fA-F:.]+(%[a-zA-Z0-9._-]+)?")  # a name, or an IPv6 address
UNQUOTED = "%/:?@!$&'()*+,;=~[]"  # what stands in an address as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the model is."""

    host: str
    port: int
    tls: bool
    name: str  # as it stands in a Host header
    path: str
    query: str

    def head(self, method: str, path: str, *, accept: str, key: str | None, length: int) -> bytes:
        """The head of a request. Compression is not asked for: it would hold chunks back."""
        lines = [
            f"{method} {self.path}/{path}{self.query} HTTP/1.1",
            f"Host: {self.name}",
            "User-Agent: mnemon",
            f"Accept: {accept}",
            "Accept-Encoding: identity",
        ]
        if key:
            lines.append(f"Authorization: Bearer {key}")
        if length:
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def parsed(base_url: str) -> Address:
    """Raises `Invalid` for an address that can never work."""
    try:
        parts = urlsplit(base_url)
        name, port = parts.hostname or "", parts.port
        host = name if ":" in name else name.encode("idna").decode("ascii")
    except ValueError:  # a port that is none, a name that cannot be one
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in ("http", "https") or not HOST.fullmatch(host):
        raise errors.Invalid("The upstream's base URL must begin with http:// or https:// and name a host.", param="base_url")
    if "@" in parts.netloc:
        raise errors.Invalid("The upstream's base URL must not hold a user name or password.", param="base_url")
    shown = f"[{host}]" if ":" in host else host
    return Address(
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        tls=parts.scheme == "https",
        name=f"{shown}:{port}" if port else shown,
        path=quote(parts.path.rstrip("/"), safe=UNQUOTED),
        query=f"?{quote(parts.query, safe=UNQUOTED)}" if parts.query else "",
    )
