"""Jobs and their occurrences: what is to run and when, and every time that it was due.

An occurrence is one instant of a job's plan, or one run by hand. It has one row for ever, which ends in one way: done, failed, skipped or
interrupted. Whoever works on it is its owner; each owner has a token of its own, so that one that was thought dead comes too late.
What a run said stands in its session's transcript and only there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from mnemon.core import errors, ids
from mnemon.core.records import Json, text_of
from mnemon.store.base import Row, Tx

State = Literal["scheduled", "paused", "completed", "error"]
Status = Literal["queued", "running", "done", "failed", "skipped", "interrupted"]

TOPIC = "jobs"
"""Touched when there may be something to do at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job. `body` says what is to run, in words that only `mnemon.jobs` reads; the rest is how far it is."""

    tenant: str
    id: str
    body: str
    state: State
    enabled: bool
    next_run_at: float | None
    times: int | None
    completed: int
    failures: int
    paused_at: float | None
    paused_reason: str | None
    last_run_at: float | None
    last_status: str | None
    last_error: str | None
    last_delivery_error: str | None
    created_at: float

    @property
    def exhausted(self) -> bool:
        return self.times is not None and self.completed >= self.times

    def ended(self, *, well: bool) -> Job:
        """It will not fire any more."""
        return replace(self, state="completed" if well else "error", enabled=False, next_run_at=None)


SAVED = (
    "body", "state", "enabled", "next_run_at", "times", "completed", "failures", "paused_at", "paused_reason", "last_run_at", "last_status",
    "last_error",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An occurrence as whoever works on it knows it."""

    tenant: str
    id: str
    job: str
    planned: float | None
    token: int
    deaths: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an occurrence ended, and where in which transcript its turn stands."""

    status: Status
    at: float
    error: Json | None = None
    session_id: str | None = None
    lineage: int | None = None
    first: int | None = None
    last: int | None = None
    receipt: str | None = None
    usage: Json | None = None
    deliver: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """An occurrence with what was said; `output` is None if there is nothing, or if it was deleted."""

    tenant: str
    id: str
    job: str
    planned: float | None
    at: float
    status: Status
    token: int
    claimed_at: float | None
    started_at: float | None
    finished_at: float | None
    session_id: str | None
    receipt: str | None
    usage: Json | None
    error: Json | None
    delivery: str
    delivery_at: float | None
    deliveries: list[Json]
    output: str | None


class Jobs:
    """Jobs of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def add(self, job: str, *, body: str, next_run_at: float | None, times: int | None, at: float) -> None:
        """A new job, which waits for its first instant."""
        self.tx.run("jobs_add", tenant=self.tenant, id=job, body=body, next_run_at=next_run_at, times=times, at=at)
        self.tx.touch(TOPIC)

    def find(self, job: str) -> Job | None:
        row = self.tx.one("jobs_get", tenant=self.tenant, id=job)
        return known(row) if row else None

    def get(self, job: str) -> Job:
        """One job. Raises `NotFound`."""
        found = self.find(job)
        if found is None:
            raise missing(job)
        return found

    def held(self, job: str) -> Job | None:
        """One job, which nobody else changes until this transaction ends. It is held before any of its occurrences is changed."""
        row = self.tx.one("jobs_hold", tenant=self.tenant, id=job)
        return known(row) if row else None

    def page(self, *, everything: bool, limit: int, offset: int) -> list[Job]:
        """Oldest first; the disabled ones only if `everything` is asked for."""
        return [known(r) for r in self.tx.all("jobs_list", tenant=self.tenant, all_of_them=everything, limit=limit, offset=offset)]

    def save(self, job: Job) -> None:
        """Write what changed of a job that is held."""
        self.tx.run("jobs_save", tenant=self.tenant, id=job.id, **{name: getattr(job, name) for name in SAVED})
        self.tx.touch(TOPIC)

    def advance(self, job: str, *, planned: float, following: float | None) -> bool:
        """Move the plan on from an instant that has come; False if somebody else did."""
        return bool(self.tx.run("jobs_advance", tenant=self.tenant, id=job, planned=planned, following=following))

    def undelivered(self, job: str, error: str | None) -> None:
        """Say what the last delivery failed with, if it did."""
        self.tx.run("jobs_undelivered", tenant=self.tenant, id=job, error=error)

    def delete(self, job: str) -> None:
        """Forget it with its occurrences; what its runs said stays in the transcripts. Raises `NotFound`."""
        if not self.tx.run("jobs_delete", tenant=self.tenant, id=job):
            raise missing(job)
        self.tx.touch(TOPIC)


class Occurrences:
    """Occurrences of one tenant's jobs."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def add(self, job: str, *, planned: float | None, at: float, skipped: str = "") -> str:
        """One that waits for its turn, or was `skipped` for a reason; its name. An instant that has a row already gets no second one."""
        name = ids.occurrence()
        self.tx.run(
            "occurrences_add",
            tenant=self.tenant,
            id=name,
            job=job,
            planned=planned,
            at=at if planned is None else planned,
            status="skipped" if skipped else "queued",
            finished_at=at if skipped else None,
            error=encoded({"code": "skipped", "message": skipped}) if skipped else None,
        )
        if not skipped:
            self.tx.touch(TOPIC)
        return name

    def open(self, job: str) -> tuple[int, int]:
        """How many of a job have not ended, and how many of these wait."""
        row = self.tx.one("occurrences_open", tenant=self.tenant, job=job)
        return (int(row["open"]), int(row["waiting"])) if row else (0, 0)

    def withdraw(self, job: str, reason: str, *, at: float) -> None:
        """Skip what was planned and waits."""
        error = encoded({"code": "skipped", "message": reason})
        self.tx.run("occurrences_withdraw", tenant=self.tenant, job=job, at=at, error=error)

    def claim(self, waiting: Claim, *, owner: int, at: float) -> Claim | None:
        """Become its owner; None if somebody else was quicker. The claim's token is the new owner's."""
        if self.tx.run("occurrences_claim", tenant=self.tenant, id=waiting.id, token=waiting.token, owner=owner, at=at):
            return replace(waiting, token=waiting.token + 1)
        return None

    def begun(self, claim: Claim, *, owner: int, session_id: str | None, at: float) -> bool:
        """Its turn has its session; False if it is not ours any more."""
        return bool(self.tx.run("occurrences_begun", **self._held(claim, owner), session_id=session_id, at=at))

    def end(self, claim: Claim, end: End, *, owner: int) -> bool:
        """Write down how it ended; False if it is not ours any more, and then nothing is written."""
        fields = {name: getattr(end, name) for name in ("status", "at", "session_id", "lineage", "first", "last", "receipt")}
        fields |= {"usage": encoded(end.usage) if end.usage else None, "error": encoded(end.error) if end.error else None}
        return bool(self.tx.run("occurrences_end", **self._held(claim, owner), **fields, delivery="pending" if end.deliver else ""))

    def release(self, claim: Claim, *, owner: int, died: bool) -> bool:
        """Let others take it up; whether it was ours. `died` counts against it: a run that ends its process does so again."""
        released = self.tx.run("occurrences_release", **self._held(claim, owner), deaths=int(died))
        self.tx.touch(TOPIC)
        return bool(released)

    def page(self, job: str, *, limit: int, offset: int = 0) -> list[Occurrence]:
        """Newest first."""
        return [occurrence(r) for r in self.tx.all("occurrences_page", tenant=self.tenant, job=job, limit=limit, offset=offset)]

    def find(self, name: str) -> Occurrence | None:
        row = self.tx.one("occurrences_get", tenant=self.tenant, id=name)
        return occurrence(row) if row else None

    def take_delivery(self, name: str, *, at: float, until: float) -> bool:
        """Take the delivery that is due `at`, for as long as `until`; False if somebody else was quicker."""
        return bool(self.tx.run("occurrences_take_delivery", tenant=self.tenant, id=name, at=at, until=until))

    def delivered(self, name: str, *, delivery: str, again: float | None, log: list[Json]) -> None:
        """How a delivery went, and when it is tried again."""
        self.tx.run("occurrences_delivered", tenant=self.tenant, id=name, delivery=delivery, again=again, deliveries=encoded(log))

    def _held(self, claim: Claim, owner: int) -> dict[str, Any]:
        return {"tenant": self.tenant, "id": claim.id, "owner": owner, "token": claim.token}


# -- of all tenants, for whoever works on them ---------------------------------------------------------------------------------


def due(tx: Tx, *, now: float, limit: int) -> list[tuple[str, str]]:
    """(tenant, job) of those whose instant has come, the oldest first: an index look-up, however many jobs there are."""
    return [(row["tenant"], row["id"]) for row in tx.all("jobs_due", now=now, limit=limit)]


def waiting(tx: Tx, *, limit: int) -> list[Claim]:
    """What may begin, the oldest first; of each job only if none of it is under way."""
    return [claim(row) for row in tx.all("occurrences_waiting", limit=limit)]


def owners(tx: Tx) -> list[int]:
    """Who has occurrences under way."""
    return [int(row["owner"]) for row in tx.all("occurrences_owners")]


def owned(tx: Tx, *, owner: int) -> list[Claim]:
    """What an owner has under way."""
    return [claim(row) for row in tx.all("occurrences_of_owner", owner=owner)]


def deliveries(tx: Tx, *, now: float, limit: int) -> list[tuple[str, str, float]]:
    """(tenant, occurrence, when it was due) of deliveries that are due."""
    return [(row["tenant"], row["id"], row["delivery_at"]) for row in tx.all("occurrences_to_deliver", now=now, limit=limit)]


def next_at(tx: Tx) -> float | None:
    """When the next job, or the next delivery, is due."""
    rows = (tx.one("jobs_next"), tx.one("occurrences_next_delivery"))
    return min((row["at"] for row in rows if row and row["at"] is not None), default=None)


def missing(job: str) -> errors.NotFound:
    return errors.NotFound(f"there is no job {job!r}", code="job_not_found", param="job_id")


def known(row: Row) -> Job:
    return Job(**{name: row[name] for name in Job.__dataclass_fields__} | {"enabled": bool(row["enabled"])})


def claim(row: Row) -> Claim:
    return Claim(**{name: row[name] for name in Claim.__dataclass_fields__})


def occurrence(row: Row) -> Occurrence:
    decoded: dict[str, Any] = {name: msgspec.json.decode(row[name]) if row[name] else None for name in ("usage", "error", "deliveries")}
    said = text_of(msgspec.json.decode(row["said"]).get("content")) if row["said"] else None
    plain = {name: row[name] for name in Occurrence.__dataclass_fields__ if name not in (*decoded, "output")}
    return Occurrence(**plain, **decoded, output=said)


def encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()
