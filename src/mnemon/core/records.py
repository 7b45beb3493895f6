"""The plain records that travel between the parts.

A chat message is kept as the client or the model sent it (`Message.body`), so that no field is lost on the way; what the
server needs to know about it is derived here and nowhere else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]

IDENTITY_FIELDS = ("user_id", "user_name", "chat_id", "chat_name", "chat_type", "thread_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who is talking and where, as the headers said."""

    session_id: str | None = None
    session_key: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    chat_id: str | None = None
    chat_name: str | None = None
    chat_type: str | None = None
    thread_id: str | None = None

    @property
    def stateless(self) -> bool:
        return self.session_id is None and self.session_key is None

    def where(self) -> dict[str, str | None]:
        """Who and where, without the two names of the conversation."""
        return {name: getattr(self, name) for name in IDENTITY_FIELDS}


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, in OpenAI's shape."""

    body: Json

    @property
    def role(self) -> str:
        role: str = self.body["role"]
        return role

    @property
    def text(self) -> str:
        return text_of(self.body.get("content"))

    @property
    def spoken(self) -> bool:
        """Whether it belongs into a transcript: everything but system text, which holds for its request only."""
        return self.role not in ("system", "developer")

    @property
    def calls(self) -> list[Json]:
        return self.body.get("tool_calls") or []

    def digest(self) -> bytes:
        """What makes two messages the same when a client sends its history again.

        Clients trim text, drop `reasoning_content` and turn null into "": none of that makes another message.
        """
        content = self.body.get("content")
        parts = [self.role, " ".join(self.text.split())]
        if isinstance(content, list):
            parts += [str(p.get("image_url")) for p in content if p.get("type") == "image_url"]
        for call in self.calls:
            function = call.get("function") or {}
            parts += [str(call.get("id")), str(function.get("name")), str(function.get("arguments"))]
        if self.role == "tool":
            parts.append(str(self.body.get("tool_call_id")))
        return hashlib.blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def chained(previous: bytes, digest: bytes) -> bytes:
    """The digest of a whole history, one message longer."""
    return hashlib.blake2b(previous + digest, digest_size=16).digest()


def text_of(content: Any) -> str:
    """The words of a message's content; images and other parts have none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(p.get("text") or p.get("refusal") or "" for p in content if p.get("type") in ("text", "refusal"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message of a transcript: `position` orders it within its lineage, for ever."""

    message: Message
    position: int
    at: float
    session_id: str
    tokens: int | None = None
    counted_by: str | None = None
    finish_reason: str | None = None
    erased: bool = False
    """Deleted on demand: role, position and digest are left, so that the conversation stays whole and knows it when it is sent again."""
    origin: str = ""
    """`job` for what a job asked and was told; nothing for what a client did."""

    @property
    def role(self) -> str:
        return self.message.role

    @property
    def speaker(self) -> str:
        """Whose words it is shown as: a job's are never a user's."""
        return spoken_by(self.role, self.origin)

    @property
    def text(self) -> str:
        return self.message.text


def spoken_by(role: str, origin: str) -> str:
    """The name under which words of this origin are shown to the model."""
    return role if not origin else origin if role == "user" else f"{origin} reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLine:
    """A line of a session's compressed state: words of the message at `position`, from character `start` on.

    `mark` is what the server says about them. A `start` below zero is not known.
    """

    position: int
    role: str
    at: float
    kind: str
    text: str
    score: float
    start: int = -1
    mark: str = ""

    def __hash__(self) -> int:
        """Cheaper than all fields: rendered states are kept by their lines."""
        return hash(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What a statement took the place of; its words too, if they stand in the same conversation."""

    memory: str
    reversal: bool
    position: int = 0
    start: int = 0
    role: str = ""
    at: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a stretch of a message states, as the ledger knows it now.

    `holds` is false for what was superseded or taken back. `since` is when it came into force, `happened` the time of an event as people
    write it. `explains` are the memories it is the reason of; `reasoned` says that a reason was given, by it or for it.
    """

    memory: str
    position: int
    start: int
    length: int
    kind: str
    slot: str
    values: tuple[str, ...]
    holds: bool
    since: float
    happened: str = ""
    replaced: tuple[Replaced, ...] = ()
    explains: tuple[str, ...] = ()
    reasoned: bool = False


NOTHING, HAPPENED, CHANGED, REPEATED = range(4)
"""What the ledger has to say of a message beside the memories it states, the most of it: `Recalled.told`.

When an event was; what became of a statement; that the line may repeat what is over.
"""


class Recalled(NamedTuple):  # many are made at every turn, which a dataclass is too slow for
    """A passage found again for the newest message, and why.

    `marks` are the server's own words about it, each with the number of characters of `text` it stands behind. `memories` are those it
    states or repeats. `needs` are the keys of lines that must be shown with it; `beside` is the key of the line it is to follow. `name` is
    what the marks of others call it: `#12`, with a letter for another conversation than the one that is going on. `told` says whether the
    ledger has more to say of its message.
    """

    text: str
    role: str
    at: float
    session_id: str
    position: int
    score: float
    start: int = 0
    tokens: int | None = None
    """What the text costs, if it is known without counting: when it is the whole message."""
    counted_by: str | None = None
    why: str = "words"
    marks: tuple[tuple[int, str], ...] = ()
    memories: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    beside: str = ""
    name: str = ""
    told: int = 0

    @property
    def key(self) -> str:
        """Names the line among those of one recall."""
        return f"{self.position}+{self.start} {self.session_id}" if self.session_id else self.memories[0]

    def account(self) -> Json:
        """The line without its words, which are named by where they stand; no message says what was written by hand."""
        place = {"session_id": self.session_id, "position": self.position, "start": self.start, "length": len(self.text)}
        return {
            "role": self.role,
            "at": self.at,
            "score": round(self.score, 4),
            "why": self.why,
            "memories": list(self.memories),
            "name": self.name or None,
            "notes": [words for _, words in self.marks],
            "evidence": place if self.session_id else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """One conversation: a root session and the children that compression made of it."""

    id: int
    root: str
    tip: str
    parent: str | None
    scope: int
    scope_size: int
    session_key: str | None
    system_prompt: str | None
    next_position: int
    compacted_to: int
    chain: bytes
    branches: int
    state: tuple[StateLine, ...] = ()
    scope_memories: int = 0
    scope_erasures: int = 0
    scope_changes: int = 0
    erasures: int = 0
    shared: bool = False
    """Whether its scope holds what is not of this lineage: another one, or memories that were added by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """Which session a turn really ran in: the `hermes` object of every reply."""

    session_id: str | None = None
    parent_session_id: str | None = None
    session_key: str | None = None
    compressed: bool = False
    receipt_id: str | None = None

    def as_json(self) -> Json:
        return {
            "session_id": self.session_id,
            "parent_session_id": self.parent_session_id,
            "session_key": self.session_key,
            "compressed": self.compressed,
            "receipt_id": self.receipt_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """The client's `Idempotency-Key`, bound to tenant, route, identity headers and body."""

    slot: bytes
    fingerprint: bytes
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """The end of an earlier turn that this one continues: its last message, and the digest of the whole history up to it."""

    position: int
    chain: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One turn, as the edge understood it: nothing here depends on the route it came by.

    `history` stands in the place of the stored one in this turn's prompt. `after` names the turn to go on from: if others followed it
    since, this one begins a branch. `origin` is `job` for what no client says; without `recalls` nothing is recalled for it, and without
    `learns` it is stored but never found again. With `appends`, what is sent goes behind what is stored and is never taken for an edited
    history. A `silent` turn asks no model: its messages are put into the transcript. `places` name the messages in the client's request.
    """

    tenant: str
    identity: Identity
    messages: tuple[Message, ...]
    params: Json
    model: str
    stream: bool
    idempotency: Idempotency | None = None
    reject_if_busy: bool = False
    whole_history: bool = False
    must_exist: bool = False
    source: str = "api"
    background: bool = False
    resume_after: int = 0
    history: tuple[Message, ...] | None = None
    after: After | None = None
    origin: Literal["user", "job"] = "user"
    recalls: bool = True
    learns: bool = True
    appends: bool = False
    silent: bool = False
    places: tuple[str, ...] = ()

    @property
    def stateless(self) -> bool:
        return self.background or self.identity.stateless

    def system(self) -> tuple[Message, ...]:
        return tuple(m for m in self.messages if not m.spoken)

    def spoken(self) -> tuple[Message, ...]:
        return tuple(m for m in self.messages if m.spoken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a prompt with its price."""

    name: str
    tokens: int
    messages: int = 0
    detail: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is sent upstream, and the account of how it came about."""

    messages: list[Json]
    tokens: int
    budget: int
    blocks: tuple[Block, ...]
    recalled: tuple[Recalled, ...] = ()
    left_out: tuple[Json, ...] = ()

    def account(self, *, texts: bool = False) -> Json:
        """The explanation that receipts and previews show. Recalled texts are named by where they stand, and repeated only if asked for."""
        return {
            "tokens": self.tokens,
            "budget": self.budget,
            "blocks": [{"name": b.name, "tokens": b.tokens, "messages": b.messages, **b.detail} for b in self.blocks],
            "recalled": [{**r.account(), **({"text": r.text} if texts else {})} for r in self.recalled],
            "left_out": list(self.left_out),
        }
