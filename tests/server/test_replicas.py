"""Two server processes on one PostgreSQL behave as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests import postgres, servers
from tests.server.clients import ID, Stream, asked, client, content, messages, runs, until
from tests.servers import Server
from tests.upstream import Upstream

pytestmark = pytest.mark.postgres

Pair = tuple[Server, Server]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres_server: str, upstream: Upstream) -> Iterator[Pair]:
    """Two servers with the same key, model and database; each test has sessions of its own, and brings back what it kills."""
    with postgres.database(postgres_server) as url:
        env = {"MNEMON_DATABASE_URL": url, "MNEMON_CONTEXT_BUDGET": "2000", "MNEMON_RECALL_TOKENS": "200"}
        with (
            servers.running(data_dir=tmp_path_factory.mktemp("a"), upstream=upstream, env=env) as one,
            servers.running(data_dir=tmp_path_factory.mktemp("b"), upstream=upstream, env=env) as other,
        ):
            yield one, other


async def test_turns_of_one_session_are_serialised_across_replicas(pair: Pair, upstream: Upstream) -> None:
    """Twenty turns at once through both: each sees all before it, and none is lost or doubled."""
    async with client(pair[0]) as one, client(pair[1]) as other:
        made = [(one, other)[n % 2].chat.completions.create(**asked(f"No {n}.", "s1", temperature=0)) for n in range(20)]
        replies = await asyncio.gather(*made)
    assert [r.choices[0].message.content for r in replies] == [f"ECHO:No {n}." for n in range(20)]
    transcript = messages(pair[0], "s1")
    assert [role for role, _ in transcript] == ["user", "assistant"] * 20
    assert sorted(said for _, said in transcript[::2]) == sorted(f"No {n}." for n in range(20))
    for number, request in enumerate(r for r in upstream.requests if r["messages"][-1]["content"].startswith("No ")):
        assert [(m["role"], m["content"]) for m in request["messages"]] == transcript[: 2 * number + 1]


def test_a_busy_session_is_busy_everywhere(pair: Pair) -> None:
    """A turn on one replica makes the other refuse on request."""
    one, other = pair
    stream = Stream(one, "[[words 20]] [[slow 1]]", "s2")
    stream.until("word1")
    assert other.chat("Now!", session="s2", X_Mnemon_If_Busy="reject").body["error"]["code"] == "session_busy"
    assert other.chat("In turn.", session="s2").text == "ECHO:In turn."
    stream.until("[DONE]")
    stream.leave()
    assert [said for role, said in messages(one, "s2") if role == "user"][1] == "In turn."


def test_a_request_is_replayed_by_the_other_replica(pair: Pair, upstream: Upstream) -> None:
    """The record of one is the record of both, JSON and stream; another body is refused by both."""
    one, other = pair
    first = one.chat("[[unique]]", session="s3", Idempotency_Key="k")
    again = other.chat("[[unique]]", session="s3", Idempotency_Key="k")
    assert again.body == first.body
    assert again.headers["idempotency-replayed"] == "true"
    assert other.chat("[[unique]] other", session="s3", Idempotency_Key="k").body["error"]["code"] == "idempotency_key_conflict"
    assert len(runs(upstream, "[[unique]]")) == 1


def test_a_stream_is_resumed_on_the_other_replica_while_it_runs(pair: Pair, upstream: Upstream) -> None:
    """`Last-Event-ID` on B continues what A still writes, word by word, with the same numbers; the turn runs once."""
    one, other = pair
    said = "[[words 20]] [[slow 2]]"
    stream = Stream(one, said, "s4", Idempotency_Key="k")
    seen = stream.until("word5")
    stream.leave()
    started = time.monotonic()
    rest = Stream(other, said, "s4", Idempotency_Key="k", Last_Event_ID=str(len(seen)))
    early = rest.until("word8")
    soon = time.monotonic() - started
    late = rest.until("[DONE]")
    assert time.monotonic() - started > soon + 0.3
    rest.leave()
    frames = seen + early + late
    assert content(frames) == " ".join(f"word{n}" for n in range(1, 21))
    assert [int(f.split(b"\n")[0].removeprefix(b"id: ")) for f in frames] == list(range(1, len(frames) + 1))
    assert len(runs(upstream, said)) == 1
    whole = Stream(other, said, "s4", Idempotency_Key="k")
    assert whole.until("[DONE]") == frames
    whole.leave()


def test_any_id_continues_at_the_tip_on_any_replica(pair: Pair) -> None:
    """What one replica compressed the other continues, by the oldest id."""
    tips = []
    for number in range(16):
        answer = pair[number % 2].chat(f"Number {number}: " + "stone river garden " * 60, session="root")
        assert answer.status == 200
        tips.append(answer.headers[ID.lower()])
    assert len(set(tips)) >= 3
    assert messages(pair[0], "root") == messages(pair[1], tips[-1])
    assert len(messages(pair[1], "root")) == 32


def test_a_killed_replica_leaves_its_session_to_the_other(pair: Pair) -> None:
    """B continues A's session at once, and answers the request that A did not."""
    one, other = pair
    one.chat("Before.", session="s6")
    stream = Stream(one, "[[words 50]] [[slow 30]]", "s6", Idempotency_Key="k")
    stream.until("word2")
    one.kill()
    stream.leave()
    started = time.monotonic()
    assert other.chat("After.", session="s6").text == "ECHO:After."
    assert time.monotonic() - started < 2
    again = Stream(other, "[[words 50]] [[slow 30]]".replace("30", "0"), "s6", Idempotency_Key="k2")
    again.until("[DONE]")
    again.leave()
    assert [role for role, _ in messages(other, "s6")] == ["user", "assistant"] * 3
    one.restart()


def test_a_client_that_follows_a_killed_replica_may_try_again(pair: Pair) -> None:
    """A stream followed on B whose turn ran on A ends with an error when A dies, and the same request then runs on B."""
    one, other = pair
    said = "[[words 20]] [[slow 1.5]]"
    stream = Stream(one, said, "s7", Idempotency_Key="k")
    stream.until("word3")
    follower = Stream(other, said, "s7", Idempotency_Key="k")
    follower.until("word3")
    one.kill()
    stream.leave()
    end = follower.until("[DONE]")
    follower.leave()
    assert b'"finish_reason":"error"' in b"".join(end)
    again = Stream(other, said, "s7", Idempotency_Key="k")
    assert content(again.until("[DONE]")).endswith("word20")
    again.leave()
    assert len(messages(other, "s7")) == 2
    one.restart()


def test_a_key_revoked_by_command_ends_on_every_replica(pair: Pair) -> None:
    """`mnemon keys add` and `revoke` take effect at once in both processes."""
    env = {name: pair[0].env[name] for name in ("MNEMON_DATABASE_URL", "MNEMON_DATA_DIR")}
    secret = servers.command("keys", "add", "phone", env=env).stdout.strip()

    def known() -> list[int]:
        return [server.call("GET", "/v1/models", Authorization=f"Bearer {secret}").status for server in pair]

    assert until(lambda: known() == [200, 200]) < 1
    assert servers.command("keys", "revoke", "phone", env=env).returncode == 0
    assert until(lambda: known() == [401, 401]) < 1
