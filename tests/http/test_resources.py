"""Sessions as resources, previews, receipts, and what the server says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mnemon.core import errors
from tests.http.world import CHANNEL, ID, OTHER_KEY, RECEIPT, World, error, path_of, running

FACT = "The launch code of the Saturn probe is heliotrope-42."
ASK = "What is the launch code of the Saturn probe?"


async def test_a_session_is_created_with_what_is_given(world: World) -> None:
    """Every field that can be given is shown again; `session_id` is another word for `id`; without one an id is made."""
    body = {"id": "s ä/1", "title": "Plan", "system_prompt": "Be kind.", "model": "m-1", "source": "cli", "session_key": "chan"}
    response = await world.post("/api/sessions", body, {"X-Hermes-User-Id": "u"})
    assert response.status_code == 201
    assert response.json()["object"] == "hermes.session"
    row = response.json()["session"]
    assert {name: row[name] for name in ("id", "title", "model", "source", "session_key", "user_id")} == {
        **{name: body[name] for name in ("id", "title", "model", "source", "session_key")},
        "user_id": "u",
    }
    assert row["has_system_prompt"] is True
    assert "Be kind." not in str(row)
    assert (row["message_count"], row["end_reason"], row["parent_session_id"], row["_lineage_root_id"]) == (0, None, None, "s ä/1")
    assert row == await world.session("s ä/1")
    assert (await world.post("/api/sessions", {"session_id": "t"}, {CHANNEL: "by-header"})).json()["session"]["session_key"] == "by-header"
    made = (await world.client.post("/api/sessions")).json()["session"]["id"]
    assert len({made, "t", "s ä/1"}) == 3
    error(await world.post("/api/sessions", {"id": "t"}), 409, "session_exists", "id")
    assert (await world.say("By the key alone.", key="chan")).json()["hermes"]["session_id"] == "s ä/1"


async def test_a_listing_shows_the_newest_first_and_pages(world: World) -> None:
    """Sessions are listed by their last activity, in pages, filtered by key and source."""
    for number in range(5):
        await world.say(f"Hello {number}.", f"s{number}", "even" if number % 2 == 0 else None)
    await world.say("Again.", "s1")
    assert await world.listed() == ["s1", "s4", "s3", "s2", "s0"]
    assert await world.listed("session_key=even") == ["s4", "s2", "s0"]
    page = await world.get("/api/sessions?limit=2&offset=2")
    assert [row["id"] for row in page["data"]] == ["s3", "s2"]
    assert (page["limit"], page["offset"], page["has_more"]) == (2, 2, True)
    assert (await world.get("/api/sessions?limit=2&offset=3"))["has_more"] is False
    await world.post("/api/sessions", {"id": "job", "source": "cron"})
    assert await world.listed("source=cron") == ["job"]
    (row,) = (await world.get("/api/sessions?limit=1&offset=1"))["data"]
    assert row["preview"] == "Hello 1."
    assert row["_lineage_root_id"] == "s1"


async def test_a_session_counts_what_happened_in_it(world: World) -> None:
    """Messages, model calls and tokens add up."""
    await world.say("One two three.", "s")
    await world.stream("Four.", "s")
    row = await world.session("s")
    assert (row["message_count"], row["api_call_count"], row["tool_call_count"]) == (4, 2, 0)
    assert row["input_tokens"] == 3 + 6
    assert row["output_tokens"] == 4
    assert row["last_active"] >= row["started_at"] > 0


async def test_a_session_can_be_renamed_and_ended(world: World) -> None:
    """Title and end reason can be changed, null clears the title, and nothing else can be touched."""
    await world.say("Hi.", "s")
    patched = await world.client.patch(path_of("s"), json={"title": "Groceries ä", "end_reason": "user_left"})
    row = patched.json()["session"]
    assert (row["title"], row["end_reason"]) == ("Groceries ä", "user_left")
    assert (await world.client.patch(path_of("s"), json={"title": None})).json()["session"]["title"] is None
    for body, param in (({"id": "x"}, "id"), ({"model": "m"}, "model"), ({"title": "x" * 300}, "title"), ({"end_reason": 7}, "end_reason")):
        error(await world.client.patch(path_of("s"), json=body), 400, param=param)
    await world.say("Still open.", "s")
    assert len(await world.messages("s")) == 4


async def test_a_deleted_session_is_gone_with_all_it_gave(world: World) -> None:
    """Messages, memories, receipts and idempotency records go with it; the id begins anew."""
    first = await world.say(FACT, "s", "chan", headers={"Idempotency-Key": "k"})
    deleted = await world.client.delete(path_of("s"))
    assert deleted.json() == {"object": "hermes.session.deleted", "id": "s", "deleted": True}
    error(await world.client.get(path_of("s")), 404, "session_not_found")
    error(await world.client.get(f"{path_of('s')}/messages"), 404, "session_not_found")
    error(await world.client.get(f"/v1/receipts/{first.headers[RECEIPT]}"), 404, "receipt_not_found")
    await world.say(ASK, "other", "chan")
    assert "heliotrope" not in world.model.seen
    await world.say(ASK, "s", "chan")
    assert "heliotrope" not in world.model.seen
    assert len(await world.messages("s")) == 2


async def test_messages_are_shown_with_all_their_fields(world: World) -> None:
    """A stored message has id, session, role, content, time and the fields of tools and reasoning."""
    await world.say("Hi.", "s")
    body = await world.get(f"{path_of('s')}/messages")
    assert (body["object"], body["session_id"], body["has_more"]) == ("list", "s", False)
    assert body["pagination"] == {"limit": 500, "offset": 0, "order": "oldest", "has_more": False}
    fields = {"id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "token_count", "finish_reason"}
    for message in body["data"]:
        assert set(message) >= fields
    assert body["data"][1]["finish_reason"] == "stop"


async def test_a_preview_shows_the_prompt_and_writes_nothing(world: World) -> None:
    """The preview is the very prompt that the next turn sends, with its blocks and tokens; no model call, no write."""
    await world.post("/api/sessions", {"id": "s", "system_prompt": "Be kind.", "session_key": "chan"})
    await world.say(FACT, "elsewhere", "chan")
    await world.say("Hello.", "s")
    before = [await world.get("/api/sessions"), await world.get(f"{path_of('s')}/messages")]
    shown = await world.preview(ASK, "s")
    assert len(world.model.requests) == 2
    assert before == [await world.get("/api/sessions"), await world.get(f"{path_of('s')}/messages")]
    assert shown["object"] == "mnemon.context.preview"
    assert (shown["session_id"], shown["session_key"]) == ("s", "chan")
    blocks = {block["name"]: block for block in shown["blocks"]}
    assert set(blocks) == {"system", "tools", "state", "history", "recall", "new"}
    assert blocks["history"]["messages"] == 2
    assert blocks["system"]["tokens"] > 0
    assert sum(block["tokens"] for block in shown["blocks"]) <= shown["tokens"] <= shown["budget"] == 16384
    assert any("heliotrope-42" in passage["text"] for passage in shown["recalled"])
    evidence = next(p["evidence"] for p in shown["recalled"] if "heliotrope-42" in p["text"])
    assert evidence["session_id"] == "elsewhere"
    assert all(isinstance(p["score"], int | float) for p in shown["recalled"])
    await world.say(ASK, "s")
    assert world.model.prompt == shown["messages"]


async def test_a_preview_of_a_new_session_makes_none(world: World) -> None:
    """Previewing an unknown id, a key alone or a stateless request leaves no trace and blocks nothing."""
    assert (await world.preview("Hi.", "new"))["session_id"] == "new"
    await world.preview("Hi.", key="chan")
    assert (await world.preview("Hi."))["session_id"] is None
    assert await world.listed() == []
    await world.say("Hi.", "new")
    error(await world.post("/v1/context/preview", {"messages": [{"role": "user", "content": "?"}]}, {ID: "new", CHANNEL: "a\x01"}), 400)
    await world.say("Hi.", "bound", "one")
    body = {"messages": [{"role": "user", "content": "?"}]}
    error(await world.post("/v1/context/preview", body, {ID: "bound", CHANNEL: "two"}), 409, "session_key_conflict")


async def test_a_preview_tells_what_was_left_out(tmp_path: Path) -> None:
    """History that does not fit is counted among what was left out."""
    async with running(tmp_path, context_budget=600, recall_tokens=100) as world:
        world.model.script.append("word " * 900)
        await world.say("Write much.", "s")
        shown = await world.preview("And now?", "s")
        assert shown["tokens"] <= 600
        (left,) = [entry for entry in shown["left_out"] if entry["block"] == "history"]
        assert left["messages"] == 2
        assert left["reason"]


async def test_a_receipt_tells_what_a_reply_was_made_from(world: World) -> None:
    """Each turn of a session has a receipt: its session, prompt account, usage and where the messages are."""
    await world.say(FACT, "one", "chan")
    response = await world.say(ASK, "two", "chan")
    streamed = await world.stream("More.", "two")
    receipt = await world.get(f"/v1/receipts/{response.headers[RECEIPT]}")
    assert receipt["object"] == "mnemon.receipt"
    assert (receipt["session_id"], receipt["session_key"], receipt["finish_reason"]) == ("two", "chan", "stop")
    assert receipt["usage"] == response.json()["usage"]
    assert receipt["stored"] == {"from_position": 1, "to_position": 2}
    assert receipt["prompt"]["tokens"] <= receipt["prompt"]["budget"]
    assert receipt["prompt"]["recalled"][0]["evidence"]["session_id"] == "one"
    assert (await world.get(f"/v1/receipts/{streamed.end['hermes']['receipt_id']}"))["stored"]["from_position"] == 3
    assert RECEIPT not in (await world.say("Stateless.")).headers


async def test_j30_models_are_listed_and_found(light: World) -> None:
    """Our own model is first, then what the upstream offers; each is found by its id, and so are our aliases."""
    body = await light.get("/v1/models")
    assert body["object"] == "list"
    assert [m["id"] for m in body["data"]] == ["mnemon", "scripted"]
    assert all(m["object"] == "model" and isinstance(m["created"], int) and m["owned_by"] for m in body["data"])
    for name in ("mnemon", "hermes", "hermes-agent", "scripted"):
        assert (await light.get(f"/v1/models/{name}"))["id"] == name


async def test_the_models_name_can_be_set(tmp_path: Path) -> None:
    """`MNEMON_MODEL_NAME` names the model that is offered, and chat answers to it."""
    async with running(tmp_path, model_name="oracle") as world:
        assert (await world.get("/v1/models"))["data"][0]["id"] == "oracle"
        await world.say("Hi.", model="oracle")
        assert world.model.requests[-1]["model"] == "scripted"


async def test_the_builtin_model_says_what_it_is(tmp_path: Path) -> None:
    """Without an upstream there is one model, and its description does not pretend."""
    async with running(tmp_path, builtin=True) as world:
        (model,) = (await world.get("/v1/models"))["data"]
        assert model["id"] == "mnemon"
        assert "not a" in model["description"]


async def test_every_route_that_needs_nothing_but_a_credential_answers(light: World) -> None:
    """What capabilities list with GET and without a name in the path can be asked as it stands."""
    for name, route in (await light.get("/v1/capabilities"))["endpoints"].items():
        if route["method"] == "GET" and "{" not in route["path"]:
            assert (await light.client.get(route["path"])).status_code == 200, name


async def test_capabilities_name_what_a_client_may_rely_on(light: World) -> None:
    """Hermes' keys are there with our own beside them, and every endpoint that is named exists."""
    body = await light.get("/v1/capabilities")
    features = body["features"]
    assert features["session_continuity_header"] == ID
    assert features["session_key_header"] == CHANNEL
    assert "X-Hermes-User-Id" in features["identity_headers"]
    for name in (
        "chat_completions",
        "chat_completions_streaming",
        "session_resources",
        "session_chat",
        "session_chat_streaming",
        "session_fork",
    ):
        assert features[name] is True
    assert body["auth"] == {"type": "bearer", "required": True}
    routes = {(method, route.path) for route in light.app.routes for method in route.methods or ()}  # type: ignore[attr-defined]
    assert {(e["method"], e["path"]) for e in body["endpoints"].values()} <= routes


async def test_health(world: World) -> None:
    """The short check needs no key; the long one tells about database, disk and model."""
    for path in ("/health", "/v1/health"):
        response = await world.of("").client.get(path)
        assert response.json() == {**response.json(), "status": "ok", "platform": "hermes-agent"}
    body = await world.get("/health/detailed")
    assert body["status"] == "ok"
    assert body["readiness"]["checks"]["state_db"]["status"] == "ok"
    assert body["readiness"]["checks"]["model"]["kind"] == "upstream"


async def test_metrics_name_no_tenant_session_or_key(world: World) -> None:
    """Any valid key reads the counters, which tell how much happened and never to whom."""
    other = await world.key("tenant-zebra", OTHER_KEY)
    await other.say(
        "Hello quokka.", "session-giraffe", "key-okapi", headers={"X-Hermes-User-Id": "user-lemur", "Idempotency-Key": "idem-ibis"}
    )
    await other.chat("x", "s", temperature=9)
    await other.client.get(path_of("session-unknown-dodo"))
    response = await other.client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    for word in ("zebra", "quokka", "giraffe", "okapi", "lemur", "ibis", "dodo", "default"):
        assert word not in response.text
    assert 'mnemon_turns_total{outcome="done"} 1' in response.text
    assert 'status="400"' in response.text
    assert 'status="404"' in response.text


@pytest.mark.parametrize("path", ["/v1/models", "/v1/capabilities", "/health/detailed", "/metrics", "/api/sessions"])
async def test_discovery_works_with_an_empty_server(light: World, path: str) -> None:
    """Nothing has to have happened before."""
    assert (await light.client.get(path)).status_code == 200


async def test_the_preview_is_how_the_conversation_begins(world: World) -> None:
    """It follows an edit of the first message, is one line, and is never a command or its confirmation."""

    async def previews() -> dict[str, Any]:
        return {row["_lineage_root_id"]: row["preview"] for row in (await world.get("/api/sessions"))["data"]}

    first = {"role": "user", "content": "Plan a trip\n  to Rome."}
    await world.say([first], "s")
    await world.say("And a hotel.", "s")
    assert (await previews())["s"] == "Plan a trip to Rome."
    reply = {"role": "assistant", "content": "Reply 1."}
    await world.say([first, reply, {"role": "user", "content": "No hotel."}], "s")
    assert (await previews())["s"] == "Plan a trip to Rome."
    await world.say([{**first, "content": "Plan a trip to Oslo."}, reply, {"role": "user", "content": "Please."}], "s")
    assert (await previews())["s"] == "Plan a trip to Oslo."
    made = (await world.say("/new", "s")).headers[ID]
    assert (await previews())[made] is None
    told = [{"role": "user", "content": "/new"}, {"role": "assistant", "content": "Started a new conversation."}]
    await world.say([*told, {"role": "user", "content": "Bake a cake."}], made)
    assert (await previews())[made] == "Bake a cake."


async def test_a_parameter_without_effect_is_refused(light: World) -> None:
    """A listing that cannot honour a parameter says which one it is, instead of showing something else."""
    await light.say("Hi.", "s")
    for path in ("/api/sessions", f"{path_of('s')}/messages"):
        refused = error(await light.client.get(f"{path}?limit=1&after=x"), 400, "unsupported_parameter", "after")
        assert "limit, offset" in refused["message"]
        assert (await light.client.get(f"{path}?limit=1&offset=0")).status_code == 200


async def test_the_front_door(light: World) -> None:
    """`GET /` says with a key what this is and where the API begins; without one it is closed like everything else."""
    found = await light.get("/")
    assert found["name"] == "mnemon"
    assert found["version"]
    for path in (found["capabilities"], found["sessions"], found["health"], f"{found['api']}/models"):
        assert (await light.client.get(path)).status_code == 200, path
    closed = error(await light.client.get("/", headers={"Authorization": ""}), 401, "invalid_api_key")
    assert "mnemon serve" in closed["message"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/models", "/v1/models"),
        ("/v1/v1/models", "/v1/models"),
        ("/sessions", "/api/sessions"),
        ("/v1/sessions", "/api/sessions"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
    ],
)
async def test_a_path_that_is_nearly_right(light: World, path: str, meant: str) -> None:
    """A route that is missed by its prefix is named."""
    missed = error(await light.client.post(path, json={}), 404, "route_not_found")
    assert f"did you mean {meant}?" in missed["message"]
    assert "did you mean" not in error(await light.client.get("/v1/nothing"), 404, "route_not_found")["message"]


async def test_health_says_what_the_last_calls_showed(tmp_path: Path) -> None:
    """The model's state follows the turns: unknown, ok, failing since the first failure of a row, and ok again."""
    now = 1000.0
    async with running(tmp_path, clock=lambda: now) as world:

        async def model() -> tuple[Any, ...]:
            body = await world.get("/health/detailed")
            found = body["readiness"]["checks"]["model"]
            return body["status"], found["status"], found["last_answer_at"], found["failing_since"], found["last_error"]

        assert await model() == ("ok", "unknown", None, None, None)
        await world.say("Hi.", "s")
        assert await model() == ("ok", "ok", 1000.0, None, None)
        for failure in (errors.ModelError("gone"), errors.ModelTimeout("late")):
            now += 1
            world.model.script.append(failure)
            await world.chat("Hi.", "s")
        assert await model() == ("degraded", "failing", 1000.0, 1001.0, "upstream_timeout")
        await world.say("/new", "s")
        await world.chat("Hi.", "s", n=2)
        assert (await model())[1] == "failing", "neither asked the model"
        now += 1
        world.model.script.append(errors.ModelRejected("not this one"))
        await world.chat("Hi.", "s", stream=True)
        assert await model() == ("ok", "ok", 1003.0, None, None)
