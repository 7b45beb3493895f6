"""Deliveries: what a run said, posted to the address its job names, signed, tried again with growing pauses, and logged.

The signature is that of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`), with the job's own secret. Addresses of
private networks are refused when the connection is made, by the very address it is made to: a name that changes its mind changes nothing.
A delivery may come twice, with the same `webhook-id`; it is over when it was answered with 2xx. Redirects are not followed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import msgspec

from mnemon.core import errors
from mnemon.core.records import Json
from mnemon.jobs import shown, wishes
from mnemon.jobs.wishes import Wish, restored
from mnemon.model import address, connections
from mnemon.store.base import Tx
from mnemon.store.jobs import Jobs, Occurrence, Occurrences

PAUSES = (5.0, 30.0, 120.0, 600.0, 3600.0)  # seconds before each further try
HELD_SECONDS = 60.0  # that a try has before somebody else makes it
SILENCE = 15.0
TOTAL = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A delivery that is due, and ours."""

    tenant: str
    occurrence: Occurrence
    url: str
    secret: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """How a try went: the status it was answered with, or why there was none."""

    status: int | None = None
    error: str | None = None

    @property
    def taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def problem(self) -> str | None:
        return None if self.taken else self.error or f"answered with status {self.status}"


def taken(tx: Tx, tenant: str, name: str, *, due: float, now: float) -> Parcel | None:
    """Take a delivery that is due; None if somebody else did, or if there is nowhere to deliver to any more."""
    occurrences = Occurrences(tx, tenant)
    if not occurrences.take_delivery(name, at=due, until=now + HELD_SECONDS):
        return None
    found = occurrences.find(name)
    job = Jobs(tx, tenant).find(found.job) if found else None
    if found is None or job is None:
        return None
    wish = restored(job.body)
    if not wish.webhook:
        occurrences.delivered(name, delivery="dropped", again=None, log=found.deliveries)
        return None
    return Parcel(tenant=tenant, occurrence=found, url=wish.webhook, secret=wish.secret, body=content(found, wish))


def content(found: Occurrence, wish: Wish) -> bytes:
    """What is posted: the job, and the run as `GET /api/jobs/{id}/runs` shows it."""
    run: Json = {name: value for name, value in shown.run(found, wish).items() if name != "delivery"}
    kind = "job.run.done" if found.status == "done" else "job.run.failed"
    return msgspec.json.encode(
        {"type": kind, "timestamp": run["finished_at"], "data": {"job": {"id": found.job, "name": wish.name}, "run": run}}
    )


def noted(tx: Tx, parcel: Parcel, receipt: Receipt, *, now: float) -> str:
    """Write down how a try went, and when the next is due; what has become of the delivery."""
    found = parcel.occurrence
    log = [*found.deliveries, {"at": now, "status": receipt.status, "error": receipt.error}]
    tries = len(log)
    state = "delivered" if receipt.taken else "failed" if tries > len(PAUSES) else "pending"
    again = now + PAUSES[tries - 1] if state == "pending" else None
    Occurrences(tx, parcel.tenant).delivered(found.id, delivery=state, again=again, log=log)
    Jobs(tx, parcel.tenant).undelivered(found.job, receipt.problem)
    return state


def signature(secret: str, *, name: str, at: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, b"%b.%d.%b" % (name.encode(), at, body), hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


async def post(parcel: Parcel, *, private: bool, now: float) -> Receipt:
    """One try."""
    try:
        to = wishes.reachable(parcel.url, private=private)
    except errors.Invalid as error:
        return Receipt(error=error.message)
    pool = connections.Pool(
        host=to.host, port=to.port, tls=to.tls, connect_limit=connections.CONNECT_LIMIT, screen=None if private else screened(to.host)
    )
    try:
        connection = await pool.connection()
        await connection.ask(head(parcel, to, at=int(now)) + parcel.body, silence=SILENCE, total=TOTAL)
        return Receipt(status=connection.status)
    except TimeoutError:
        return Receipt(error="no answer in time")
    except connections.NotHttp:
        return Receipt(error="the answer is not HTTP")
    except OSError as error:
        return Receipt(error=f"cannot be reached: {error.strerror or error}")
    finally:
        pool.close()


def screened(host: str) -> Callable[[str], None]:
    """Refuses to connect to an address of a private network."""

    def screen(number: str) -> None:
        if wishes.forbidden(number):
            raise OSError(0, f"{host} has a private address, which MNEMON_WEBHOOK_PRIVATE does not allow")

    return screen


def head(parcel: Parcel, to: address.Address, *, at: int) -> bytes:
    path = quote(urlsplit(parcel.url).path or "/", safe=address.UNQUOTED)
    lines = [
        f"POST {path}{to.query} HTTP/1.1",
        f"Host: {to.name}",
        "User-Agent: mnemon",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(parcel.body)}",
        f"webhook-id: {parcel.occurrence.id}",
        f"webhook-timestamp: {at}",
        f"webhook-signature: {signature(parcel.secret, name=parcel.occurrence.id, at=at, body=parcel.body)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
