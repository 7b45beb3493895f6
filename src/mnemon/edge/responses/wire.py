"""A turn as a response: one object, or OpenAI's events about it.

Every frame is one event, so that the number of a frame is its `sequence_number` plus one. An item ends when another one begins; calls stay
open, since models interleave them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from mnemon.core import errors
from mnemon.core.clock import Clock
from mnemon.core.records import Effective, Json, text_of
from mnemon.edge import sse
from mnemon.edge.responses import objects
from mnemon.edge.responses.items import item_id
from mnemon.runs.kept import end_of
from mnemon.store.works import Status
from mnemon.turn.running import Outcome

PART = {"thoughts": "reasoning_text", "words": "output_text", "refusal": "refusal"}
PREFIX = {"thoughts": "rs", "message": "msg", "call": "fc"}


@dataclass(slots=True)
class Piece:
    """A part of an item that grows: thoughts, words, a refusal, or the arguments of a call."""

    kind: str
    texts: list[str] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)


@dataclass(slots=True)
class Item:
    """An item of the output that is being made."""

    group: str
    id: str
    index: int
    pieces: list[Piece] = field(default_factory=list)
    call: Json = field(default_factory=dict)
    told: bool = False
    """Whether its beginning was sent: that of a call waits for its name."""


class ResponseWire:
    """Shows a turn as a response. `asked` is what is repeated of the request, `system` its system messages."""

    def __init__(self, name: str, asked: Json, *, system: list[Json], clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.body: Json = {"asked": asked, "created_at": int(clock())} | ({"system": system} if system else {})
        self.status: Status = "queued"
        self.reply: Json = {}
        self.sequence = 0
        self.items: list[Item] = []
        self.current: Item | None = None
        self.calls: dict[int, Item] = {}

    # -- what is kept (`runs.kept.Shown`) -------------------------------------------------------------------------------------

    def shown(self) -> Json:
        """What is kept of the response."""
        return self.body

    def ended_as(self) -> Status:
        """Completed, or cut short."""
        return self.status

    def unsaid(self) -> Json:
        """The reply, where it stands in no transcript."""
        return {"unsaid": self.reply}

    # -- the end --------------------------------------------------------------------------------------------------------------

    def _ended(self, outcome: Outcome) -> None:
        self.status = "incomplete" if outcome.finish_reason in objects.INCOMPLETE else "completed"
        self.reply = outcome.reply
        self.body |= {"usage": outcome.usage, "finish": outcome.finish_reason, "completed_at": int(self.clock())}
        if outcome.effective.session_id:
            self.body["hermes"] = outcome.effective.as_json()

    def whole(self, outcome: Outcome) -> bytes:
        self._ended(outcome)
        choices = outcome.whole.get("choices") or [{}]
        logprobs = [logprob(entry) for entry in ((choices[0].get("logprobs") or {}).get("content") or ())]
        items = objects.output(self.name, outcome.reply, status=self._item_status(), logprobs=logprobs)
        return msgspec.json.encode(objects.response(self.name, self.body, status=self.status, output=items))

    def finish(self, outcome: Outcome) -> list[bytes]:
        self._ended(outcome)
        frames: list[bytes] = []
        if all(item.group == "thoughts" for item in self.items):
            self._grow("words", [], frames)  # an answer of no words is still one
        self._close(frames)
        for item in self.calls.values():
            self._done(item, frames)
        segments = self._segments()
        if segments != objects.segments_of(outcome.reply):
            self.body["segments"] = segments
        output = objects.output(self.name, outcome.reply, status=self._item_status(), segments=segments)
        with_logprobs(output, self.items)
        self.body["events"] = self.sequence + 1
        response = objects.response(self.name, self.body, status=self.status, output=output)
        return [*frames, self._event(f"response.{self.status}", response=response)]

    def failure(self, error: errors.MnemonError) -> list[bytes]:
        self.status = end_of(error)
        if self.status != "cancelled":
            self.body["error"] = objects.error(error)
        frames = [] if self.sequence else [self._event("response.created", response=self._so_far())]
        self.body["events"] = self.sequence + 1
        response = objects.response(self.name, self.body, status=self.status, output=[])
        return [*frames, self._event("response.failed", response=response)]

    def _item_status(self) -> str:
        return "incomplete" if self.status == "incomplete" else "completed"

    def _segments(self) -> list[list[Any]]:
        """What the reply consists of, in the order it came."""
        found: list[list[Any]] = []
        calls = [self.calls[index] for index in sorted(self.calls)]
        for item in self.items:
            found += [["call", calls.index(item)]] if item.group == "call" else [[p.kind, len(p.text)] for p in item.pieces]
        return found

    def retell(self, body: Json, *, status: Status, output: list[Json], told: int = 0) -> list[bytes]:
        """The events of a response that has ended, made anew from what is stored; of one of which so many were told, the last."""
        self.body = body
        frames: list[bytes] = []
        if told:
            self.sequence = told
        else:
            frames = self.begin(Effective())
            self._say_again(output, frames)
        self.sequence = max(self.sequence, body.get("events", 0) - 1)
        self.status = status
        last = status if status in ("completed", "incomplete") else "failed"
        response = objects.response(self.name, body, status=status, output=output)
        return [*frames, self._event(f"response.{last}", response=response)]

    def _say_again(self, output: list[Json], frames: list[bytes]) -> None:
        """Each part in one piece."""
        for shown in output:
            if shown["type"] == "function_call":
                function = {"name": shown["name"], "arguments": shown["arguments"]}
                self._call({"index": len(self.calls), "id": shown["call_id"], "function": function}, frames)
            for given in shown.get("content") or ():
                kind = next(kind for kind, called in PART.items() if called == given["type"])
                text = given.get("text") or given.get("refusal")
                self._grow(kind, [text] if text else [], frames)
        self._close(frames)
        for item in self.calls.values():
            self._done(item, frames)

    # -- the stream -----------------------------------------------------------------------------------------------------------

    def begin(self, effective: Effective) -> list[bytes]:
        self.status = "running"
        return [self._event("response.created", response=self._so_far()), self._event("response.in_progress", response=self._so_far())]

    def _so_far(self) -> Json:
        return objects.response(self.name, self.body, status="running", output=[])

    def chunk(self, chunk: Json) -> list[bytes]:
        choices = chunk.get("choices")
        if not choices:
            return []
        frames: list[bytes] = []
        delta = choices[0].get("delta") or {}
        if thoughts := objects.thoughts_of(delta):
            self._grow("thoughts", [thoughts], frames)
        if words := text_of(delta.get("content")):
            logprobs = [logprob(entry) for entry in ((choices[0].get("logprobs") or {}).get("content") or ())]
            self._grow("words", [words], frames, logprobs)
        if refusal := delta.get("refusal"):
            self._grow("refusal", [refusal], frames)
        for piece in delta.get("tool_calls") or ():
            self._call(piece, frames)
        return frames

    def _grow(self, kind: str, texts: list[str], frames: list[bytes], logprobs: list[Json] | None = None) -> None:
        """Add to the part of this kind that is open, or open one."""
        group = objects.group_of(kind)
        item = self.current
        if item is None or item.group != group:
            self._close(frames)
            item = self.current = self._opened(group)
            self._tell(item, frames)
        if not item.pieces or item.pieces[-1].kind != kind:
            if item.pieces:
                self._part_done(item, frames)
            item.pieces.append(Piece(kind))
            frames.append(self._about_part(item, "content_part.added", part=part(kind, "", [])))
        piece = item.pieces[-1]
        for text in texts:
            piece.texts.append(text)
            piece.logprobs += logprobs or []
            extra = {"logprobs": [short(entry) for entry in logprobs or ()]} if kind == "words" else {}
            frames.append(self._about_part(item, f"{PART[kind]}.delta", delta=text, **extra))

    def _call(self, given: Json, frames: list[bytes]) -> None:
        index = given.get("index", len(self.calls))
        function = given.get("function") or {}
        item = self.calls.get(index)
        if item is None:
            self._close(frames)
            item = self.calls[index] = self._opened("call")
            item.call = {"id": given.get("id") or "", "name": ""}
            item.pieces = [Piece("arguments")]
        item.call["id"] = given.get("id") or item.call["id"]
        item.call["name"] += function.get("name") or ""
        if item.call["name"]:
            self._tell(item, frames)
        if more := function.get("arguments"):
            item.pieces[0].texts.append(more)
            frames.append(self._about(item, "function_call_arguments.delta", item_id=item.id, delta=more))

    def _tell(self, item: Item, frames: list[bytes]) -> None:
        if not item.told:
            item.told = True
            frames.append(self._about(item, "output_item.added", item=self._shown(item, "in_progress")))

    def _opened(self, group: str) -> Item:
        index = len(self.items)
        item = Item(group, item_id(PREFIX[group], self.name, index), index)
        self.items.append(item)
        return item

    def _close(self, frames: list[bytes]) -> None:
        """The open item is whole."""
        item, self.current = self.current, None
        if item:
            self._part_done(item, frames)
            self._done(item, frames)

    def _part_done(self, item: Item, frames: list[bytes]) -> None:
        piece = item.pieces[-1]
        name = "refusal" if piece.kind == "refusal" else "text"
        extra = {"logprobs": [short(entry) for entry in piece.logprobs]} if piece.kind == "words" else {}
        frames.append(self._about_part(item, f"{PART[piece.kind]}.done", **{name: piece.text}, **extra))
        frames.append(self._about_part(item, "content_part.done", part=part(piece.kind, piece.text, piece.logprobs)))

    def _done(self, item: Item, frames: list[bytes]) -> None:
        self._tell(item, frames)
        if item.group == "call":
            whole = {"name": item.call["name"], "arguments": item.pieces[0].text}
            frames.append(self._about(item, "function_call_arguments.done", item_id=item.id, **whole))
        status = self._item_status() if item.group != "thoughts" else "completed"
        frames.append(self._about(item, "output_item.done", item=self._shown(item, status)))

    def _shown(self, item: Item, status: str) -> Json:
        if item.group == "call":
            function = {"name": item.call["name"], "arguments": item.pieces[0].text}
            return objects.call_item(item.id, {"id": item.call["id"], "function": function}, status=status)
        if item.group == "thoughts":
            return objects.reasoning_item(item.id, item.pieces[0].text if item.pieces else None, status=status)
        return objects.message_item(item.id, [part(p.kind, p.text, p.logprobs) for p in item.pieces], status=status)

    def _about(self, item: Item, name: str, /, **more: Any) -> bytes:
        return self._event(f"response.{name}", output_index=item.index, **more)

    def _about_part(self, item: Item, name: str, /, **more: Any) -> bytes:
        return self._event(f"response.{name}", item_id=item.id, output_index=item.index, content_index=len(item.pieces) - 1, **more)

    def _event(self, name: str, /, **more: Any) -> bytes:
        frame = sse.event(name, {"type": name, "sequence_number": self.sequence, **more})
        self.sequence += 1
        return frame


def part(kind: str, text: str, logprobs: list[Json]) -> Json:
    if kind == "words":
        return objects.text_part(text, logprobs)
    return objects.refusal_part(text) if kind == "refusal" else {"type": "reasoning_text", "text": text}


def logprob(entry: Json) -> Json:
    """A token's probability, as a part of the output has it."""
    top = [
        {"token": t.get("token", ""), "bytes": t.get("bytes") or [], "logprob": t.get("logprob", 0.0)}
        for t in entry.get("top_logprobs") or ()
    ]
    return {"token": entry.get("token", ""), "bytes": entry.get("bytes") or [], "logprob": entry.get("logprob", 0.0), "top_logprobs": top}


def short(entry: Json) -> Json:
    """The same, as an event has it."""
    top = [{"token": t["token"], "logprob": t["logprob"]} for t in entry["top_logprobs"]]
    return {"token": entry["token"], "logprob": entry["logprob"], "top_logprobs": top}


def with_logprobs(output: list[Json], items: list[Item]) -> None:
    """Put the probabilities that were streamed into the finished output."""
    for shown, item in zip(output, items, strict=False):
        if item.group == "message":
            for shown_part, piece in zip(shown["content"], item.pieces, strict=False):
                if piece.logprobs:
                    shown_part["logprobs"] = piece.logprobs
