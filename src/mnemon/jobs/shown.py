"""How jobs and their runs are shown: Hermes' field names, and ours beside them. Times are ISO 8601 with the offset of the job's zone."""

from __future__ import annotations

from mnemon.core.records import Json
from mnemon.jobs.schedule import iso
from mnemon.jobs.wishes import Wish, own_session, restored
from mnemon.store.jobs import Job, Occurrence

UPCOMING = 5
# What Hermes' jobs have and these do not, for clients that expect it.
ABSENT = ("provider", "provider_snapshot", "model_snapshot", "base_url", "script", "context_from", "enabled_toolsets", "workdir")


def job(found: Job, latest: Occurrence | None, *, now: float) -> Json:
    wish = restored(found.body)
    zone, rule = wish.schedule.zone, wish.schedule
    upcoming: list[float] = []
    if found.next_run_at is not None:
        left = UPCOMING if found.times is None else min(UPCOMING, found.times - found.completed)
        upcoming = [found.next_run_at, *rule.upcoming(max(found.next_run_at, now), UPCOMING)][: max(0, left)]
    return {
        "id": found.id,
        "name": wish.name,
        "prompt": wish.prompt,
        "schedule": rule.shown(),
        "schedule_display": rule.display,
        "timezone": zone,
        "repeat": {"times": found.times, "completed": found.completed},
        "enabled": found.enabled,
        "state": found.state,
        "paused_at": iso(found.paused_at, zone),
        "paused_reason": found.paused_reason,
        "created_at": iso(found.created_at, zone),
        "next_run_at": iso(found.next_run_at, zone),
        "next_runs": [iso(at, zone) for at in upcoming],
        "last_run_at": iso(found.last_run_at, zone),
        "last_status": found.last_status,
        "last_error": found.last_error,
        "last_delivery_error": found.last_delivery_error,
        "deliver": wish.deliver,
        "webhook_secret": wish.secret or None,
        "session_id": wish.session_id or own_session(found.id),
        "session_key": wish.session_key,
        "memory": wish.memory,
        "missed": wish.missed,
        "model": wish.model or None,
        "instructions": wish.instructions or None,
        "timeout": wish.timeout,
        "max_tokens": wish.max_tokens,
        "skills": [],
        "skill": None,
        "no_agent": False,
        **dict.fromkeys(ABSENT),
        "origin": wish.origin,
        "latest_execution": execution(latest, wish) if latest else None,
    }


def execution(found: Occurrence, wish: Wish) -> Json:
    """The newest run in short."""
    zone = wish.schedule.zone
    return {
        "id": found.id,
        "job_id": found.job,
        "source": source(found),
        **dict.fromkeys(("process_id", "pid", "process_started_at")),
        "status": found.status,
        "claimed_at": iso(found.claimed_at, zone),
        "started_at": iso(found.started_at, zone),
        "finished_at": iso(found.finished_at, zone),
        "error": reason(found),
    }


def run(found: Occurrence, wish: Wish) -> Json:
    """A run with all there is to know of it."""
    usage = found.usage or {}
    counts = {"input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens")}
    return {
        **execution(found, wish),
        "object": "mnemon.job.run",
        "planned_at": iso(found.planned, wish.schedule.zone),
        "attempts": found.token,
        "session_id": found.session_id,
        "receipt_id": found.receipt,
        "output": found.output,
        "usage": {**counts, "total_tokens": usage.get("total_tokens")} if usage else None,
        "error_code": (found.error or {}).get("code"),
        "delivery": {"status": found.delivery, "attempts": found.deliveries} if found.delivery else None,
    }


def source(found: Occurrence) -> str:
    return "manual" if found.planned is None else "schedule"


def reason(found: Occurrence) -> str | None:
    return found.error["message"] if found.error else None
