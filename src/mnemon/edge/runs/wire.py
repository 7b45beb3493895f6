"""How a run looks: its events, and the object that says how it stands."""

from __future__ import annotations

from typing import Any

import msgspec

from mnemon.core import errors, ids
from mnemon.core.clock import Clock
from mnemon.core.records import Effective, Json, StoredMessage
from mnemon.edge import errors as edge_errors
from mnemon.edge import sse
from mnemon.edge.sessions import token_counts
from mnemon.runs.following import Numbered
from mnemon.runs.kept import end_of
from mnemon.runs.service import Seen, with_messages
from mnemon.store.base import Tx
from mnemon.store.works import Status, Work
from mnemon.turn.running import Outcome

ENDS = ("run.completed", "run.failed", "run.cancelled", "run.interrupted")
LOST = errors.Stopped("the server ended before the run did; start it again")


class EventWire:
    """A turn as Hermes shows a run: unnamed frames, the name of the event inside the JSON."""

    def __init__(self, *, model: str, clock: Clock) -> None:
        self.run_id = ids.run()
        self.model = model
        self.clock = clock
        self.session_id: str | None = None
        self.count = 0
        self.last_event: str | None = None
        self.thought: list[str] = []
        self.steers: list[str] = []
        self.over = False
        self.ending: Json = {}
        self.output = ""

    def _event(self, name: str, **payload: Any) -> bytes:
        self.count += 1
        self.last_event = name
        return frame(name, run_id=self.run_id, session_id=self.session_id, at=self.clock(), **payload)

    def begin(self, effective: Effective) -> list[bytes]:
        self.session_id = effective.session_id
        return [self._event("run.started", model=self.model)]

    def chunk(self, chunk: Json) -> list[bytes]:
        delta = (chunk["choices"][0].get("delta") or {}) if chunk.get("choices") else {}
        found = []
        if thought := delta.get("reasoning_content"):
            self.thought.append(thought)
            found.append(self._event("reasoning.delta", delta=thought))
        if said := delta.get("content") or delta.get("refusal"):
            found += self._thought_through()
            found.append(self._event("message.delta", delta=said))
        return found

    def _thought_through(self) -> list[bytes]:
        """What the model thought aloud, in one piece, once it goes on to speak."""
        text, self.thought = "".join(self.thought), []
        return [self._event("reasoning.available", text=text)] if text else []

    def steered(self, text: str) -> bytes:
        self.steers.append(text)
        return self._event("run.steered", text=text)

    def finish(self, outcome: Outcome) -> list[bytes]:
        thought = self._thought_through()
        self.session_id = outcome.effective.session_id
        self.output = said_in([outcome.reply])
        hermes = outcome.effective.as_json()
        self.ending = {"usage": token_counts(outcome.usage), "finish_reason": outcome.finish_reason, "hermes": hermes}
        self.over = True
        return [*thought, self._event("run.completed", output=self.output, **calls([outcome.reply]), **self.ending, **pending(self.steers))]

    def failure(self, error: errors.MnemonError) -> list[bytes]:
        name = f"run.{end_of(error)}"
        self.ending = {} if name == "run.cancelled" else {"error": edge_errors.shape(error)}
        self.over = True
        return [self._event(name, **self.ending, **pending(self.steers))]

    def whole(self, outcome: Outcome) -> bytes:
        """Runs are always streams."""
        return msgspec.json.encode({"run_id": self.run_id, "output": said_in([outcome.reply])})

    def shown(self) -> Json:
        return {"model": self.model, "last_event": self.last_event, "events": self.count, **self.ending}

    def ended_as(self) -> Status:
        return "completed"

    def unsaid(self) -> Json:
        return {"output": self.output}


def frame(name: str, *, run_id: str, session_id: str | None, at: float, **payload: Any) -> bytes:
    return sse.data({"event": name, "run_id": run_id, "session_id": session_id, "timestamp": at, **payload})


def said_in(messages: list[Json]) -> str:
    """The text of the reply among a turn's messages."""
    replies = [m for m in messages if m["role"] == "assistant"]
    return (replies[-1].get("content") or replies[-1].get("refusal") or "") if replies else ""


def calls(messages: list[Json]) -> Json:
    """The tools that the reply asks for, if it does."""
    wanted = messages[-1].get("tool_calls") if messages else None
    return {"tool_calls": wanted} if wanted else {}


def pending(steers: list[str] | tuple[str, ...]) -> Json:
    """What was said to the run and reached no model."""
    return {"pending_steer": "\n".join(steers)} if steers else {}


def bodies(said: list[StoredMessage]) -> list[Json]:
    return [m.message.body for m in said]


def shown(seen: Seen) -> Json:
    """A run as clients see it."""
    work, said = seen.work, bodies(seen.said)
    hermes = work.body.get("hermes") or {}
    return {
        "object": "hermes.run",
        "run_id": work.id,
        "status": work.status,
        "session_id": work.session_id,
        "model": work.body.get("model"),
        "created_at": work.at,
        "updated_at": work.updated_at,
        "last_event": f"run.{work.status}" if work.ended else work.body.get("last_event"),
        "output": work.body.get("output") or said_in(said) if work.status == "completed" else None,
        **calls(said),
        "finish_reason": work.body.get("finish_reason"),
        "usage": work.body.get("usage"),
        "error": error_of(work),
        "receipt_id": hermes.get("receipt_id"),
        "hermes": hermes or None,
        "pending_steer": pending(work.steers).get("pending_steer") if work.ended else None,
    }


def error_of(work: Work) -> Json | None:
    lost = work.status == "interrupted" and "error" not in work.body
    return edge_errors.shape(LOST) if lost else work.body.get("error")


def retold(tx: Tx, tenant: str, work: Work, logged: Numbered) -> Numbered:
    """What the event log has of a run, with its end made anew if that is missing."""
    if logged and is_end(logged[-1][1]):
        return logged
    number = max(logged[-1][0] + 1 if logged else 1, work.body.get("events") or 1)
    seen = shown(with_messages(tx, tenant, work))
    fields = ("output", "tool_calls", "usage", "finish_reason", "hermes") if work.status == "completed" else ("error",)
    payload = {field: seen[field] for field in (*fields, "pending_steer") if seen.get(field) is not None}
    end = frame(f"run.{work.status}", run_id=work.id, session_id=work.session_id, at=work.updated_at, **payload)
    return [*logged, (number, b"id: %d\n%b" % (number, end))]


def is_end(event: bytes) -> bool:
    data = event.partition(b"data: ")[2]
    return msgspec.json.decode(data)["event"] in ENDS
