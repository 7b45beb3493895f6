"""`/v1/memory`: what is remembered can be read, explained, corrected and taken along, by its owner alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.http import world as worlds
from tests.http.world import CHANNEL, ID, RECEIPT, REPLAYED, World, error

Json = dict[str, Any]

POSTGRES = "We use PostgreSQL 15 on RDS with read replicas in us-east-1."
REDIS = "We removed Redis because cache invalidation bugs caused stale product prices."
SERVICES = "We're committed to microservices."
MONOLITH = "We merged all services back into a monolith."


async def call(world: World, method: str, path: str, key: str | None = "k", body: Any = None, **headers: str) -> httpx2.Response:
    """A request about the memory of a key."""
    names: Json = {CHANNEL: key.encode()} if key is not None else {}
    return await world.client.request(method, f"/v1/memory{path}", json=body, headers={**names, **headers})


async def listed(world: World, query: str = "", key: str | None = "k") -> list[Json]:
    """A page of a listing."""
    response = await call(world, "GET", query, key)
    assert response.status_code == 200, response.text
    found: list[Json] = response.json()["data"]
    return found


async def noted(world: World, text: str, key: str = "k", **more: Any) -> Json:
    """A memory added by hand."""
    response = await call(world, "POST", "", key, {"text": text, **more})
    assert response.status_code == 201, response.text
    found: Json = response.json()
    return found


def texts(rows: list[Json]) -> list[str]:
    """The words of memories."""
    return [row["text"] for row in rows]


async def test_what_was_said_is_listed_with_its_evidence(world: World) -> None:
    """A statement stands in the listing word for word, and by itself with the message it was said in."""
    await world.say(POSTGRES, "s", "k")
    (row,) = await listed(world)
    assert POSTGRES.rstrip(".") in row["text"]
    assert (row["object"], row["origin"], row["state"], row["pinned"]) == ("memory", "user", "active", False)
    one = (await call(world, "GET", f"/{row['id']}")).json()
    (evidence,) = one["evidence"]
    assert (evidence["session_id"], evidence["position"], evidence["role"]) == ("s", 1, "user")
    assert evidence["quote"] == row["text"] == POSTGRES[evidence["start"] : evidence["start"] + evidence["length"]]
    assert texts(await listed(world, "?session=s")) == [row["text"]]
    await world.say("Hello!", "other", "k")
    assert await listed(world, "?session=other") == []


async def test_a_listing_is_filtered_and_paged(world: World) -> None:
    """Filters by kind, words, slot, origin, state and time; pages go on behind the last id, each memory once."""
    made = [await noted(world, f"The code of gate {n} is {n}{n}{n}.", slot=f"gate {n}/code") for n in range(5)]
    first = (await call(world, "GET", "?limit=2")).json()
    assert [row["id"] for row in first["data"]] == [made[4]["id"], made[3]["id"]]
    assert (first["object"], first["first_id"], first["last_id"], first["has_more"]) == ("list", made[4]["id"], made[3]["id"], True)
    rest = (await call(world, "GET", f"?limit=3&after={first['last_id']}")).json()
    assert ([row["id"] for row in rest["data"]], rest["has_more"]) == ([m["id"] for m in made[2::-1]], False)
    assert texts(await listed(world, "?text=GATE%203")) == [made[3]["text"]]
    assert texts(await listed(world, "?slot=gate%202/code")) == [made[2]["text"]]
    assert len(await listed(world, "?kind=fact&origin=user&state=active&from=2020-01-01")) == 5
    assert await listed(world, "?to=2020-01-01") == await listed(world, "?origin=import") == await listed(world, "?kind=plan") == []


async def test_a_change_closes_and_as_of_shows_what_held(world: World) -> None:
    """A reversal is in the ledger with both sides; what was closed is still there for those who ask for then."""
    await world.say(SERVICES, "s", "k")
    (before,) = await listed(world)
    await world.say(MONOLITH, "s", "k")
    assert [MONOLITH.rstrip(".") in t for t in texts(await listed(world))] == [True]
    assert texts(await listed(world, "?state=superseded")) == [before["text"]]
    assert texts(await listed(world, f"?as_of={before['recorded_at'] + 1e-6}")) == [before["text"]]
    (change,) = await listed(world, "/reversals")
    assert (change["before"]["id"], change["object"]) == (before["id"], "memory.reversal")
    assert change["now"]["evidence"][0]["quote"] in MONOLITH
    old = (await call(world, "GET", f"/{before['id']}")).json()
    assert [m["id"] for m in old["superseded_by"]] == [change["now"]["id"]] == [m["id"] for m in old["history"]]
    new = (await call(world, "GET", f"/{change['now']['id']}")).json()
    assert [m["id"] for m in new["superseded"]] == [before["id"]]
    line = await listed(world, "/timeline?topic=microservices")
    assert [m["id"] for m in line] == [before["id"], change["now"]["id"]]


async def test_why_and_search(world: World) -> None:
    """Asked why, the reason comes; a search gives scores, evidence and what is known of the words it found."""
    await world.say(REDIS, "s", "k")
    (row,) = [m for m in await listed(world) if "Redis" in m["text"]]
    (by_id,) = await listed(world, f"/why?id={row['id']}")
    (by_words,) = await listed(world, "/why?q=why%20did%20we%20remove%20Redis")
    assert by_id == by_words
    assert "cache invalidation bugs" in json.dumps(by_id)
    for response in (
        await call(world, "POST", "/search", body={"query": "Redis prices", "limit": 3}),
        await call(world, "GET", "/search?q=Redis%20prices&limit=3"),
    ):
        hit = response.json()["data"][0]
        assert "Redis" in hit["text"]
        assert hit["score"] > 0
        assert (hit["evidence"]["session_id"], hit["evidence"]["position"]) == ("s", 1)
        assert [m["id"] for m in hit["memories"]] == [row["id"]]


async def test_a_note_is_recalled_without_a_message(world: World) -> None:
    """What is added by hand reaches the next prompt of the key; adding it again adds nothing; a key never used begins with it."""
    made = await noted(world, "My dentist is Dr. Okonkwo.", pinned=True)
    assert (made["origin"], made["evidence"], made["pinned"]) == ("user", [], True)
    again = await call(world, "POST", "", body={"text": "My dentist is Dr. Okonkwo."})
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    await world.say("Who is my dentist?", "s", "k")
    assert "Okonkwo" in world.model.seen
    await world.say("Who is my dentist?", "t", "other")
    assert "Okonkwo" not in world.model.seen


async def test_a_correction_closes_and_can_be_taken_back(world: World) -> None:
    """The old words are closed by the new ones; pinned stays pinned; a closed memory cannot be corrected, but reopened."""
    old = await noted(world, "The staging port is 5432.", pinned=True)
    response = await world.client.patch(f"/v1/memory/{old['id']}", json={"text": "The staging port is 5433."})
    new = response.json()
    assert (response.status_code, new["text"], new["pinned"], new["slot"]) == (200, "The staging port is 5433.", True, old["slot"])
    assert [m["id"] for m in new["superseded"]] == [old["id"]]
    assert texts(await listed(world)) == [new["text"]]
    error(await world.client.patch(f"/v1/memory/{old['id']}", json={"text": "x y z"}), 409, "memory_closed", "memory_id")
    assert (await call(world, "POST", f"/{new['id']}/unpin")).json()["pinned"] is False
    assert (await world.client.patch(f"/v1/memory/{new['id']}", json={"pinned": True})).json()["pinned"] is True
    assert (await call(world, "POST", f"/{old['id']}/reopen")).json()["state"] == "active"
    assert (await call(world, "POST", f"/{old['id']}/pin")).json()["pinned"] is True


async def test_an_export_can_be_imported_and_again(world: World) -> None:
    """Another scope gets the same memories, states and links, of origin import; the second time nothing is added."""
    await world.say(SERVICES, "s", "k")
    await world.say(MONOLITH, "s", "k")
    await noted(world, "The staging port is 5432.")
    raw = (await call(world, "GET", "/export")).content
    assert all(json.loads(line)["object"] == "memory" for line in raw.splitlines())
    for expected in ((3, 0), (0, 3)):
        response = await world.client.post("/v1/memory/import", content=raw, headers={CHANNEL: "copy"})
        assert (response.json()["imported"], response.json()["known_already"]) == expected
    assert (await world.client.post("/v1/memory/import", content=raw, headers={CHANNEL: "k"})).json()["imported"] == 0
    theirs, ours = await listed(world, "?state=all", "copy"), await listed(world, "?state=all")
    assert sorted((m["text"], m["state"]) for m in theirs) == sorted((m["text"], m["state"]) for m in ours)
    assert {m["origin"] for m in theirs} == {"import"}
    (change,) = await listed(world, "/reversals", "copy")
    assert MONOLITH.rstrip(".") in change["now"]["text"]
    wrong = ('"rule": "\\u0000"', '"kind": "wish"', '"state": "open"', '"origin": "nobody"', f'"version": {2**40}', '"number": -1')
    happened = '"happened": {"start": 1, "end": 2, "grain": "aeon"}'
    lines = [f'{{"id": "mem_1", "text": "x", {field}}}'.encode() for field in (*wrong, happened)]
    for line in (b'{"id": 5}', b'{"id": "mem_\\u0000", "text": "x"}', *lines):
        error(await world.client.post("/v1/memory/import", content=line, headers={CHANNEL: "copy"}), 400, "invalid_import", "line 1")
    error(await world.client.post("/v1/memory/import", content=b"", headers={CHANNEL: "copy"}), 400, "invalid_import")


async def test_a_note_is_written_once_for_a_key_of_idempotency(world: World) -> None:
    """The same request again gets the same memory and says so; another body is refused; the record keeps no word of it."""
    once = {"Idempotency-Key": "n1"}
    first = await call(world, "POST", "", body={"text": "The vault opens at nine."}, **once)
    second = await call(world, "POST", "", body={"text": "The vault opens at nine."}, **once)
    assert (first.status_code, second.status_code, second.headers[REPLAYED]) == (201, 201, "true")
    assert first.json()["id"] == second.json()["id"]
    error(await call(world, "POST", "", body={"text": "Other."}, **once), 409, "idempotency_key_conflict")


async def test_j01_j06_keys_are_worlds_apart(world: World) -> None:
    """J 1 and 6: what is saved under a key never shows under another, in a prompt, a listing, a search or by its id."""
    keys = ["a:b", "a-b", "a/b", "a b", "ä", "ö", "tenant:alice"]
    for number, key in enumerate(keys):
        await world.say(f"The passphrase of the harbour is lantern{number}.", f"s{number}", key)
    for number, key in enumerate(keys):
        (row,) = await listed(world, "", key)
        assert f"lantern{number}" in row["text"]
        hits = (await call(world, "POST", "/search", key, {"query": "What is the passphrase of the harbour?"})).json()["data"]
        assert {w for h in hits for w in [h["text"]] if "lantern" in w} == {f"The passphrase of the harbour is lantern{number}."}
        error(await call(world, "GET", f"/{row['id']}", keys[number - 1]), 404, "memory_not_found")
        await world.say("What is the passphrase of the harbour?", f"t{number}", key)
        assert [n for n in range(len(keys)) if f"lantern{n}" in world.model.seen] == [number]


async def test_j02_tenants_are_worlds_apart(two: tuple[World, World]) -> None:
    """J 2: another tenant's equal key and id are others; its memories cannot be read, changed, deleted or exported."""
    ours, theirs = two
    row = await noted(ours, "The safe is behind the mirror.")
    await ours.say(POSTGRES, "s", "k")
    assert await listed(theirs) == []
    assert (await call(theirs, "POST", "/search", body={"query": "safe mirror PostgreSQL"})).json()["data"] == []
    assert (await call(theirs, "GET", "/export")).content == b""
    for method, path, body in (
        ("GET", "", None), ("PATCH", "", {"pinned": True}), ("DELETE", "", None), ("POST", "/pin", None), ("POST", "/reopen", None),
    ):  # fmt: skip
        error(await call(theirs, method, f"/{row['id']}{path}", None, body), 404, "memory_not_found")
    error(await call(theirs, "POST", "/delete", body={"memory_id": row["id"]}), 404, "memory_not_found")
    error(await call(theirs, "POST", "/delete", None, body={"session_id": "s"}, **{ID: "s"}), 404, "session_not_found")
    assert len(await listed(ours)) == 2


async def test_j44_a_fact_is_known_from_the_next_request_on(world: World) -> None:
    """J 44: said once, it is in the listing when the reply has ended, and in the next prompt of any session of the key."""
    await world.say("My cat is called Miso.", "monday", "k")
    assert any("Miso" in t for t in texts(await listed(world)))
    await world.say("What is my cat called?", "monday", "k")
    assert "Miso" in world.model.seen
    await world.say("What is my cat called?", "tuesday", "k")
    assert "Miso" in world.model.seen


async def test_j46_recalled_text_is_not_sent_again(world: World) -> None:
    """J 46: what was recalled for one turn stands in no later prompt as history, and makes no memory."""
    await world.say("My cat is called Miso.", "monday", "k")
    await world.say("What is my cat called?", "tuesday", "k")
    assert world.model.seen.count("Miso") == 1
    await world.say("Thanks. What is seven times six?", "tuesday", "k")
    assert "mnemon-recall" not in "\n".join(str(m["content"]) for m in world.model.prompt[:-1])
    assert len(await listed(world)) == 1


async def test_the_scope_must_be_named(light: World) -> None:
    """Neither header: 400 with its name. A session without a key is its own scope; one of another key is refused, an unknown not there."""
    error(await call(light, "GET", "", None), 400, "memory_scope_required", CHANNEL)
    error(await call(light, "POST", "", None, {"text": "x"}), 400, "memory_scope_required", CHANNEL)
    await light.say("My cat is called Miso.", "alone")
    await light.say("My dog is called Rex.", "bound", "k")
    response = await call(light, "GET", "", None, **{ID: "alone"})
    assert [("Miso" in t) for t in texts(response.json()["data"])] == [True]
    assert response.headers[ID] == "alone"
    error(await call(light, "GET", "", "other", **{ID: "bound"}), 409, "session_key_conflict", CHANNEL)
    error(await call(light, "GET", "", None, **{ID: "never"}), 404, "session_not_found")
    assert await listed(light, "", "never used") == []
    error(await call(light, "GET", "/never", None), 404, "memory_not_found")


@pytest.mark.parametrize(
    ("method", "path", "body", "param"),
    [
        ("GET", "?nope=1", None, "nope"),
        ("GET", "?limit=0", None, "limit"),
        ("GET", "?state=open", None, "state"),
        ("GET", "?kind=joke", None, "kind"),
        ("GET", "?from=yesterday", None, "from"),
        ("GET", "?as_of=x", None, "as_of"),
        ("GET", "/search", None, "q"),
        ("GET", "/search?q=a&limit=1000", None, "limit"),
        ("POST", "/search", {"query": 5}, "query"),
        ("POST", "/search", {"query": "a", "limit": "3"}, "limit"),
        ("GET", "/timeline", None, "slot"),
        ("GET", "/timeline?slot=a/b&topic=c", None, "slot"),
        ("GET", "/why", None, "id"),
        ("GET", "/reversals?after=x", None, "after"),
        ("POST", "", {}, "text"),
        ("POST", "", {"text": "  "}, "text"),
        ("POST", "", {"text": "a", "kind": "joke"}, "kind"),
        ("POST", "", {"text": "a", "slot": "a"}, "slot"),
        ("POST", "", {"text": "a", "pinned": 1}, "pinned"),
        ("POST", "", {"text": "a", "nope": 1}, "nope"),
        ("POST", "/delete", {}, "memory_id"),
        ("POST", "/delete", {"scope": True, "memory_id": "m"}, "scope"),
        ("POST", "/delete", {"scope": False}, "scope"),
        ("POST", "/delete", {"position": 1}, "session_id"),
        ("POST", "/delete", {"session_id": "s", "position": "1"}, "position"),
        ("POST", "/delete", {"session_id": "s", "to_position": 2}, "to_position"),
        ("POST", "/delete", {"from": 5, "to": 4}, "to"),
        ("POST", "/delete", {"scope": True, "preview": "yes"}, "preview"),
    ],
)
async def test_what_is_wrong_is_named(light: World, method: str, path: str, body: Any, param: str) -> None:
    """Unknown or wrong parameters and fields are refused with their name."""
    error(await call(light, method, path, "k", body), 400, param=param)


async def test_a_receipt_tells_what_memory_did(world: World) -> None:
    """A receipt has the recalled memories with score and evidence, what was left out, tokens of each block, and the memory diff."""
    first = await world.say(SERVICES, "s", "k")
    added = (await world.get(f"/v1/receipts/{first.headers[RECEIPT]}"))["memory"]["added"]
    assert [a["text"] in SERVICES for a in added] == [True]
    second = await world.say(f"{MONOLITH} What do you think?", "t", "k")
    receipt = await world.get(f"/v1/receipts/{second.headers[RECEIPT]}")
    assert [s["id"] for s in receipt["memory"]["superseded"]] == [added[0]["id"]]
    assert {"id", "by", "rule", "reversal", "text"} == set(receipt["memory"]["superseded"][0])
    assert [r["text"] for r in receipt["memory"]["refused"]] == ["What do you think?"]
    third = await world.say("Are we still committed to microservices?", "u", "k")
    receipt = await world.get(f"/v1/receipts/{third.headers[RECEIPT]}")
    (line,) = [r for r in receipt["prompt"]["recalled"] if added[0]["id"] in r["memories"]]
    assert line["text"] in SERVICES
    assert line["evidence"]["session_id"] == "s"
    assert {b["name"] for b in receipt["prompt"]["blocks"]} == {"system", "tools", "state", "history", "recall", "new"}
    assert isinstance(receipt["prompt"]["left_out"], list)


async def test_times_no_calendar_has_are_refused(world: World) -> None:
    """A time beyond the year 9999 would stop every prompt that shows its day: it is refused, by hand and in an import."""
    for value in (900_000_000_000, "900000000000", -1e15):
        wrong = await call(world, "POST", "", "k", {"text": "I live in Rome.", "valid_from": value})
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "valid_from")
    line = json.dumps({"id": "mem_a", "text": "I live in Rome.", "recorded_at": 1e15})
    response = await world.client.post("/v1/memory/import", content=line.encode(), headers={CHANNEL: "k"})
    assert response.status_code == 400, response.text
    assert await listed(world) == []


async def test_memories_that_close_each_other_do_no_harm(world: World) -> None:
    """An import may hold a circle of closings; recall comes to an end all the same."""
    rows = [
        {"id": f"mem_{one}", "text": f"I live in {one}.", "subject": "user", "attribute": "home", "single": True, "state": "superseded"}
        | {"closed_by": f"mem_{two}", "closed_at": 5.0, "valid_to": 5.0, "closed_rule": "x"}
        for one, two in (("Aaa", "Bbb"), ("Bbb", "Aaa"))
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    await world.client.post("/v1/memory/import", content=content, headers={CHANNEL: "k"})
    assert (await call(world, "GET", "/search?q=where+do+I+live")).status_code == 200
    await world.say("Where do I live?", "s", "k")


async def test_a_receipt_is_there_for_its_own_key(world: World) -> None:
    """Under another key a receipt is not found; an unknown parameter is refused."""
    response = await world.say("My PIN is 9911.", "s", "k")
    path = f"/v1/receipts/{response.headers[RECEIPT]}"
    assert (await world.client.get(path, headers={CHANNEL: "k"})).status_code == 200
    assert (await world.client.get(path, headers={CHANNEL: "thief"})).status_code == 404
    assert (await world.client.get(f"{path}?x=1")).status_code == 400


async def test_work_on_a_thing_forgets_nothing(world: World) -> None:
    """To delete, remove or drop something is work for the assistant; to forget it is for the memory."""
    await world.say("The database is in Frankfurt.", "s", "k")
    for order in ("Drop the database.", "Please delete my essay.", "Remove the nuts."):
        await world.say(order, "s", "k")
    assert "The database is in Frankfurt." in texts(await listed(world))


async def test_a_correction_is_understood_anew(world: World) -> None:
    """The corrected text fills the slot that it names, and closes what filled that; one that names none stays where it was."""
    green, home = await noted(world, "My favourite colour is green."), await noted(world, "I live in Lisbon.")
    response = await world.client.patch(f"/v1/memory/{home['id']}", json={"text": "My favourite colour is blue."})
    blue = response.json()
    assert (blue["slot"], blue["values"], blue["kind"]) == (green["slot"], ["blue"], green["kind"])
    assert {m["id"] for m in blue["superseded"]} == {home["id"], green["id"]}
    assert texts(await listed(world)) == ["My favourite colour is blue."]
    vague = (await world.client.patch(f"/v1/memory/{blue['id']}", json={"text": "Blue, or rather teal."})).json()
    assert vague["slot"] == blue["slot"]
    assert (await world.client.patch(f"/v1/memory/{vague['id']}", json={"kind": "preference"})).json()["slot"] == blue["slot"]
    named = await noted(world, "The gate opens at nine.", slot="gate/hours")
    moved = (await world.client.patch(f"/v1/memory/{named['id']}", json={"slot": "north gate/hours"})).json()
    assert (moved["text"], moved["slot"], moved["kind"]) == (named["text"], "north gate/hours", named["kind"])


async def test_a_correction_to_what_is_known(world: World) -> None:
    """Corrected into words that are remembered already, a memory gives way to that one, and nothing is there twice."""
    ada, bob = await noted(world, "My sister is called Ada."), await noted(world, "My cousin is called Bob.")
    response = await world.client.patch(f"/v1/memory/{bob['id']}", json={"text": "My sister is called Ada."})
    assert (response.status_code, response.json()["id"]) == (200, ada["id"])
    assert texts(await listed(world)) == ["My sister is called Ada."]


async def test_as_of_shows_what_held_then(world: World) -> None:
    """Each memory that held at a time is shown as it was: active, with no end; what began later is not there, what was past neither."""
    await noted(world, "The port of the shop is 5111.", slot="shop/port", valid_from="2020-01-01")
    await noted(world, "The port of the shop is 5222.", slot="shop/port", valid_from="2022-01-01")
    await noted(world, "The port of the shop is 5333.", slot="shop/port", valid_from="2024-01-01")
    for day, wanted in (
        ("2019-06-01", []),
        ("2021-06-01", ["5111"]),
        ("2022-01-01", ["5222"]),
        ("2023-06-01", ["5222"]),
        ("2025-01-01", ["5333"]),
    ):
        for state in ("", "&state=active", "&state=all"):
            found = await listed(world, f"?as_of={day}{state}")
            assert [m["values"] for m in found] == [wanted] * len(found), day
            assert len(found) == len(wanted)
            assert all((m["state"], m["valid_to"], m["closed_by"]) == ("active", None, None) for m in found)
    error(await call(world, "GET", "?as_of=2021-06-01&state=superseded"), 400, "unsupported_parameter", "state")


async def test_a_timeline_is_about_its_topic(world: World) -> None:
    """Only what has the words of the topic in it, and what it took the place of or gave way to, in order."""
    for text in (
        "My doctor is Dr. Wu.",
        "My cat is called Miso.",
        "I live in Lisbon.",
        "We use PostgreSQL 15 on RDS.",
        "My doctor is now Dr. Silva.",
    ):
        await world.say(text, "s", "k")
    for topic, wanted in (
        ("doctor", ["My doctor is Dr. Wu.", "My doctor is now Dr. Silva."]),
        ("Dr. Wu", ["My doctor is Dr. Wu.", "My doctor is now Dr. Silva."]),
        ("who is my doctor?", ["My doctor is Dr. Wu.", "My doctor is now Dr. Silva."]),
        ("cats", ["My cat is called Miso."]),
        ("postgresql rds", ["We use PostgreSQL 15 on RDS."]),
        ("weather", []),
    ):
        assert texts(await listed(world, f"/timeline?topic={topic}")) == wanted, topic


async def test_a_receipt_shows_notes_and_what_had_no_room(tmp_path: Path) -> None:
    """A note is quoted from the ledger, what was found and not shown is named with its place, and what was closed with its words."""
    async with worlds.running(tmp_path, recall_tokens=130) as world:
        note = await noted(world, "The gate code of the north gate is 4711.")
        for n in range(8):
            await world.say(f"At gate {n} the guard asks for the gate code on day {n}, and {n} more people wait there.", "s", "k")
        await world.say("The gate code of the north gate is 4712.", "s", "k")
        response = await world.say("What is the gate code of the north gate now? It is 4713.", "t", "k")
        receipt = await world.get("/v1/receipts/" + response.headers[RECEIPT])
        shown = [line for line in receipt["prompt"]["recalled"] if line["memories"] == [note["id"]]]
        assert [(line["text"], line["evidence"]) for line in shown] in ([], [(note["text"], None)])
        (left,) = [part for part in receipt["prompt"]["left_out"] if part["block"] == "recall"]
        assert left["passages"] >= len(left["best"]) > 0
        for line in left["best"]:
            assert line["text"] is not None
            assert line["score"] >= 0
        scores = [line["score"] for line in left["best"] if line["why"] == "words"]
        assert scores == sorted(scores, reverse=True)


async def test_filters_that_can_show_nothing_are_refused(world: World) -> None:
    """A page behind a memory that is not there, a session of another memory, no slot, no words, a time that ends before it begins."""
    await noted(world, "The gate opens at nine.")
    await world.say("Hello.", "elsewhere", "another key")
    error(await call(world, "GET", "?after=mem_none"), 404, "memory_not_found", "after")
    error(await call(world, "GET", "?after=%00"), 400, "invalid_request", "after")
    for session in ("never", "elsewhere"):
        error(await call(world, "GET", f"?session={session}"), 404, "session_not_found", "session")
    for query, field in (
        ("?slot=gate", "slot"),
        ("?slot=", "slot"),
        ("?text=", "text"),
        ("?from=2026-02-01&to=2026-01-01", "to"),
        ("/timeline?slot=gate", "slot"),
    ):
        error(await call(world, "GET", query), 400, "invalid_request", field)
    assert "takes none" in error(await call(world, "GET", "/export?page=2"), 400, "unsupported_parameter", "page")["message"]


async def test_an_import_in_another_tenant_is_the_same_memory(two: tuple[World, World]) -> None:
    """Words, slots, times, states, pins, reasons and reversals are there as they were; only ids, origin and evidence are its own."""
    mine, theirs = two
    for text in (
        SERVICES,
        "I moved to Porto in March 2026.",
        "My doctor is Dr. Wu.",
        REDIS,
        MONOLITH,
        "My doctor is now Dr. Silva.",
        "My cat is called Miso.",
        "Forget my cat.",
    ):
        await mine.say(text, "s", "k")
    (kept,) = await listed(mine, "?text=Porto")
    await call(mine, "POST", f"/{kept['id']}/pin")
    raw = (await call(mine, "GET", "/export")).content
    assert (await theirs.client.post("/v1/memory/import", content=raw, headers={CHANNEL: "k"})).status_code == 200
    own = ("id", "number", "origin", "version", "closed_by", "session_id", "evidence")

    def same(rows: list[Json]) -> list[Json]:
        return [{name: value for name, value in row.items() if name not in own} for row in rows]

    for query in ("?state=all", "?state=superseded", "?state=retracted", "?as_of=2026-04-01", "/timeline?slot=user/doctor"):
        assert same(await listed(theirs, query)) == same(await listed(mine, query)), query
    assert [same([c["now"], c["before"]]) for c in await listed(theirs, "/reversals")] == [
        same([c["now"], c["before"]]) for c in await listed(mine, "/reversals")
    ]
    reasons = [(await listed(world, "/why?q=Why%20did%20we%20remove%20Redis"))[0]["reason"] for world in two]
    assert reasons[0] == reasons[1] == "cache invalidation bugs caused stale product prices"
    await theirs.say("Who is my doctor?", "new", "k")
    assert "Dr. Silva" in theirs.model.seen
    assert "Miso" not in theirs.model.seen


async def test_every_change_by_post_is_done_once(world: World) -> None:
    """Pinning, reopening, importing and deleting again with the same Idempotency-Key change nothing and say that they are replayed."""
    note = await noted(world, "The gate opens at nine.")
    raw = (await call(world, "GET", "/export")).content
    steps: list[tuple[str, Any]] = [
        (f"/{note['id']}/pin", None),
        ("/import", raw),
        ("/delete", {"memory_id": note["id"]}),
    ]
    for path, body in steps:
        headers = {CHANNEL: "copy" if path == "/import" else "k", "Idempotency-Key": f"once-{path}"}
        given: Json = {"content": body} if isinstance(body, bytes) else {"json": body} if body else {}
        first, again = [await world.client.post(f"/v1/memory{path}", headers=headers, **given) for _ in range(2)]
        assert (first.status_code, again.status_code) == (200, 200), path
        assert first.json() == again.json()
        assert (REPLAYED in first.headers, again.headers[REPLAYED]) == (False, "true")
    assert await listed(world) == []
    assert len(await listed(world, "", "copy")) == 1
