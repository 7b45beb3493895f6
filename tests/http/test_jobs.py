"""Scheduled prompts over HTTP. Tests of the section on jobs of the acceptance targets bear their numbers, 38 to 43."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mnemon.core import errors
from mnemon.jobs import delivery, planning
from mnemon.model import connections
from tests.http import world as worlds
from tests.http.world import ID, REPLAYED, Json, World, error, until

SHADOW_CTO = (
    "You are the Shadow CTO for acme/backend. "
    "Review the engineering decisions you have stored in memory "
    "from the past week. Identify any recurring failure patterns "
    "or decisions that were reversed. Prepare a concise report."
)


async def made(world: World, headers: Json | None = None, **fields: Any) -> Json:
    """A new job."""
    wish = {"name": "report", "schedule": "0 9 * * 1", "prompt": "Report.", **fields}
    response = await world.post("/api/jobs", wish, headers)
    assert response.status_code == 200, response.text
    found: Json = response.json()["job"]
    return found


async def job_of(world: World, job: Json) -> Json:
    """A job as it is now."""
    found: Json = (await world.get(f"/api/jobs/{job['id']}"))["job"]
    return found


async def runs_of(world: World, job: Json, query: str = "") -> list[Json]:
    """Its runs, newest first."""
    found: list[Json] = (await world.get(f"/api/jobs/{job['id']}/runs?{query}"))["data"]
    return found


async def do(world: World, job: Json, verb: str, status: int = 200) -> Json:
    """Pause, resume or run it."""
    response = await world.post(f"/api/jobs/{job['id']}/{verb}")
    assert response.status_code == status, response.text
    found: Json = response.json()
    return found


async def change(world: World, job: Json, status: int = 200, **fields: Any) -> Json:
    """Change it."""
    response = await world.client.patch(f"/api/jobs/{job['id']}", json=fields)
    assert response.status_code == status, response.text
    found: Json = response.json()
    return found


async def ended(world: World, job: Json, count: int = 1, patience: float = 10.0) -> list[Json]:
    """Its runs, once so many have ended."""
    found: list[Json] = []

    async def enough() -> bool:
        found[:] = [run for run in await runs_of(world, job) if run["finished_at"]]
        return len(found) >= count

    await until(enough, patience)
    return found


async def ran(world: World, job: Json) -> Json:
    """Run it by hand; the run, once it has ended."""
    before = len([run for run in await runs_of(world, job) if run["finished_at"]])
    await do(world, job, "run")
    return (await ended(world, job, before + 1))[0]


def soon(seconds: float) -> str:
    """An instant ahead."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def instant(text: str) -> float:
    """What a shown instant is."""
    return datetime.fromisoformat(text).timestamp()


# -- 38: schedules ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["0 9 * * MON", "@daily", "every 2h", "30m", "2030-01-01T00:00:00Z"])
async def test_38_good_schedules_are_taken(light: World, schedule: str) -> None:
    """Names, @names, intervals, times to wait and instants make a job with its next instants."""
    job = await made(light, schedule=schedule)
    assert instant(job["next_run_at"]) > time.time()
    assert job["next_runs"][0] == job["next_run_at"]
    assert len(job["next_runs"]) == (1 if job["schedule"]["kind"] == "once" else 5)
    assert job["schedule_display"] == schedule


@pytest.mark.parametrize(
    "schedule", ["whenever", "every 0m", "every 30s", "*/10 * * * * *", "0 0 31 2 *", "2001-01-01T00:00:00Z", "", 5, None]
)
async def test_38_bad_schedules_are_refused(light: World, schedule: Any) -> None:
    """A schedule that is not understood, or would never fire, is a 400 that names the field, and nothing is stored."""
    response = await light.post("/api/jobs", {"name": "n", "prompt": "p", "schedule": schedule})
    error(response, 400, "invalid_schedule", "schedule")
    assert (await light.get("/api/jobs?include_disabled=true"))["jobs"] == []


@pytest.mark.parametrize("body", [b"[]", b"5", b'"x"', b"null", b"{nope", b""])
async def test_38_bad_json_is_refused(light: World, body: bytes) -> None:
    """What is no JSON object is a 400 in the one shape of errors."""
    error(await light.client.post("/api/jobs", content=body), 400, "invalid_json")


async def test_a_schedule_goes_by_the_clock_of_its_zone(tmp_path: Path) -> None:
    """The job's own time zone counts, else the server's; times are shown with its offset."""
    async with worlds.running(tmp_path, timezone="Asia/Kolkata") as world:
        assert (await made(world, schedule="@daily"))["next_run_at"].endswith("T00:00:00+05:30")
        job = await made(world, schedule="@daily", timezone="Europe/Berlin")
        assert job["next_run_at"][11:19] == "00:00:00"
        assert job["timezone"] == "Europe/Berlin"


# -- 39: repeat --------------------------------------------------------------------------------------------------------------------


async def test_39_repeat_stays_an_object_and_ends_the_job(world: World) -> None:
    """A changed `repeat` keeps what was completed, runs by hand count, and the last one ends the job."""
    job = await made(world)
    assert job["repeat"] == {"times": None, "completed": 0}
    assert (await change(world, job, repeat=2))["job"]["repeat"] == {"times": 2, "completed": 0}
    await ran(world, job)
    assert (await job_of(world, job))["state"] == "scheduled"
    await ran(world, job)
    found = await job_of(world, job)
    assert (found["repeat"], found["state"], found["enabled"]) == ({"times": 2, "completed": 2}, "completed", False)
    assert (found["next_run_at"], found["next_runs"], found["latest_execution"]["status"]) == (None, [], "done")
    error(await world.post(f"/api/jobs/{job['id']}/run"), 409, "job_completed")
    error(await world.post(f"/api/jobs/{job['id']}/resume"), 409, "job_completed")
    await change(world, job, repeat=3, enabled=True)
    assert (await job_of(world, job))["state"] == "scheduled"


# -- 40: run now -------------------------------------------------------------------------------------------------------------------


async def test_40_run_now_begins_within_a_second(world: World) -> None:
    """From the request to the model it takes less than a second, every time, also while the job is paused."""
    job = await made(world)
    await do(world, job, "pause")
    for count in range(3):
        start = time.monotonic()
        await do(world, job, "run")

        async def asked(wanted: int = count + 1) -> bool:
            return len(world.model.requests) == wanted

        await until(asked)
        assert time.monotonic() - start < 1
        await ended(world, job, count + 1)


# -- 41: memory --------------------------------------------------------------------------------------------------------------------


async def test_41_a_job_in_a_session_continues_it(world: World) -> None:
    """A job made with a session id has that session's history in its prompt, and its run is the session's next turn."""
    await world.say("We deploy on Tuesdays.", "s")
    job = await made(world, {ID: "s"}, prompt="When do we deploy?")
    run = await ran(world, job)
    assert [m["content"] for m in world.model.prompt if m["role"] == "user"] == ["We deploy on Tuesdays.", "When do we deploy?"]
    assert run["session_id"] == "s"
    assert (await world.messages("s"))[2:] == [("user", "When do we deploy?"), ("assistant", run["output"])]


@pytest.mark.parametrize("how", ["header", "body"])
async def test_41_a_job_under_a_key_recalls_what_its_chats_said(world: World, how: str) -> None:
    """The facts of chats under the key are in the job's prompt, another key's never; and it is not the key's current transcript."""
    await world.say("The cache is called Marmot.", "chat-1", "team")
    await world.say("The cache is called Wombat.", "chat-2", "others")
    where: Json = {"headers": {"X-Hermes-Session-Key": "team"}} if how == "header" else {"session_key": "team"}
    job = await made(world, prompt="What is the cache called?", **where)
    run = await ran(world, job)
    assert "Marmot" in world.model.seen
    assert "Wombat" not in world.model.seen
    assert (run["session_id"], job["session_key"]) == (f"job:{job['id']}", "team")
    reply = await world.say("And now?", key="team")
    assert reply.headers[ID] == "chat-1"


async def test_a_key_that_only_a_job_used_has_no_transcript_of_the_jobs(world: World) -> None:
    """Who begins to talk under the key does not find themselves in the job's session."""
    job = await made(world, session_key="team")
    await ran(world, job)
    assert (await world.say("Hello.", key="team")).headers[ID] != f"job:{job['id']}"


async def test_a_jobs_own_session_accumulates(world: World) -> None:
    """Without session and key a job goes on in a session of its own from run to run."""
    job = await made(world, prompt="Again.")
    await ran(world, job)
    first = await ran(world, job)
    assert [m["role"] for m in world.model.prompt] == ["user", "assistant", "user"]
    assert (await world.session(f"job:{job['id']}"))["source"] == "job"
    assert first["usage"]["total_tokens"] > 0
    receipt = await world.get(f"/v1/receipts/{first['receipt_id']}")
    assert receipt["session_id"] == first["session_id"]


async def test_what_a_job_says_never_becomes_a_users_fact(world: World) -> None:
    """Prompt and output make no memory, whatever they state; both are found again as the words of a job."""
    world.model.script.append("Your name is Bartholomew, and we moved to Oslo.")
    job = await made(world, prompt="My name is Ludmilla. We use PostgreSQL now. What else?", session_key="team")
    run = await ran(world, job)
    client = world.client
    found = (await client.get("/v1/memory?state=all", headers={"X-Hermes-Session-Key": "team"})).json()["data"]
    assert found == []
    refused = (await world.get(f"/v1/receipts/{run['receipt_id']}"))["memory"]["refused"]
    assert {each["rule"] for each in refused} == {"said_by_job"}
    await world.say("What do you know about Ludmilla, Bartholomew and Oslo?", "chat", "team")
    assert "[job] My name is Ludmilla." in world.model.seen
    assert "[job reply] Your name is Bartholomew" in world.model.seen
    data = (await world.get(f"/api/sessions/job%3A{job['id']}/messages"))["data"]
    assert [m["origin"] for m in data] == ["job", "job"]


async def test_whose_words_they_are_is_copied_along(world: World) -> None:
    """A forked message keeps its origin; what a person says in a job's session is theirs."""
    job = await made(world)
    await ran(world, job)
    session = f"job:{job['id']}"
    await world.say("I am Ludmilla.", session)
    fork = (await world.post(f"/api/sessions/{session.replace(':', '%3A')}/fork", {"id": "copy"})).json()["session"]
    data = (await world.get(f"/api/sessions/{fork['id']}/messages"))["data"]
    assert [m["origin"] for m in data] == ["job", "job", None, None]


@pytest.mark.parametrize(("memory", "recalls", "found"), [("read_write", True, True), ("read", True, False), ("none", False, False)])
async def test_a_job_reads_and_writes_memory_as_it_was_told(world: World, memory: str, *, recalls: bool, found: bool) -> None:
    """`read` recalls and leaves nothing to be found, `none` does neither; the transcript is there in any case."""
    await world.say("The cache is called Marmot.", "chat", "team")
    world.model.script.append("Marmot it is, says the heron.")
    job = await made(world, prompt="What is the cache called, heron?", session_key="team", memory=memory)
    run = await ran(world, job)
    assert ("called Marmot" in world.model.seen) is recalls
    assert run["output"] == "Marmot it is, says the heron."
    await world.say("What did the heron say?", "chat-2", "team")
    assert ("says the heron" in world.model.seen) is found


async def test_the_weekly_report(world: World) -> None:
    """The article's call, bound to a key: the week's decisions are in its prompt, the reversed one flagged, the report is readable."""
    for said in (
        "We are committed to microservices.",
        "The deploy of the billing service failed because the migration ran twice.",
        "We merged all services back into a monolith.",
    ):
        await world.say(said, "standup", "repo:acme/backend")
    world.model.script.append("Report: microservices were given up.")
    response = await world.post(
        "/api/jobs",
        {"name": "weekly-pattern-report", "schedule": "0 9 * * 1", "prompt": SHADOW_CTO},
        {"X-Hermes-Session-Key": "repo:acme/backend"},
    )
    job = response.json()["job"]
    run = await ran(world, job)
    seen = world.model.seen.splitlines()
    assert any("the migration ran twice" in line for line in seen)
    assert "superseded" in next(line for line in seen if "committed to microservices" in line)
    assert "reversal of" in next(line for line in seen if "back into a monolith" in line)
    assert (run["output"], run["status"]) == ("Report: microservices were given up.", "done")
    again = await ran(world, job)
    assert again["session_id"] == run["session_id"]
    assert "microservices were given up" in world.model.seen


async def test_the_articles_call_runs_unchanged(world: World) -> None:
    """Name, schedule and prompt are enough."""
    response = await world.post("/api/jobs", {"name": "weekly-pattern-report", "schedule": "0 9 * * 1", "prompt": SHADOW_CTO})
    assert response.status_code == 200
    assert (await ran(world, response.json()["job"]))["status"] == "done"


# -- 42: output ----------------------------------------------------------------------------------------------------------------


async def test_42_a_finished_one_shot_stays_readable(world: World) -> None:
    """A job that fires once does so at its instant, once, and is there afterwards with what it said."""
    job = await made(world, schedule=soon(0.6), prompt="Once.")
    (run,) = await ended(world, job)
    await asyncio.sleep(0.5)
    assert len(await runs_of(world, job)) == 1
    assert (run["output"], run["status"], run["source"]) == ("Reply 1.", "done", "schedule")
    assert 0 <= instant(run["started_at"]) - instant(run["planned_at"]) < 1.5
    found = await job_of(world, job)
    assert (found["state"], found["last_status"], found["next_run_at"]) == ("completed", "ok", None)
    assert [j["id"] for j in (await world.get("/api/jobs"))["jobs"]] == []
    assert [j["id"] for j in (await world.get("/api/jobs?include_disabled=1"))["jobs"]] == [job["id"]]


async def test_42_runs_are_paged_newest_first(world: World) -> None:
    """A page tells whether there are more."""
    job = await made(world)
    for _ in range(3):
        await ran(world, job)
    page = await world.get(f"/api/jobs/{job['id']}/runs?limit=2")
    assert [run["output"] for run in page["data"]] == ["Reply 3.", "Reply 2."]
    assert page["has_more"] is True
    assert [run["output"] for run in await runs_of(world, job, "limit=2&offset=2")] == ["Reply 1."]


async def test_deleting_the_words_reaches_the_runs(world: World) -> None:
    """Output is read from the transcript: where that is deleted, the run has none."""
    job = await made(world, session_key="team")
    await ran(world, job)
    assert (await world.client.delete(f"/api/sessions/job%3A{job['id']}")).status_code == 200
    (run,) = await runs_of(world, job)
    assert (run["status"], run["output"]) == ("done", None)


# -- 43: what cannot be honoured ---------------------------------------------------------------------------------------------

BAD: list[tuple[str, Any]] = [
    *(("name", value) for value in ("", "  ", "n" * 201, 5, None, "a\nb")),
    *(("prompt", value) for value in ("", " ", "p" * 100_001, None, 5, "a\x00b", "/new", " /reset ")),
    *(("repeat", value) for value in (0, -1, "x", 1.5, True, {"times": 3})),
    *(("timezone", value) for value in ("Mars/Base", 5, "", "../etc/passwd")),
    *(("deliver", value) for value in ("carrier-pigeon", "origin", "all", "webhook:", "webhook:ftp://x", "webhook:nonsense", 5, ["local"])),
    *(
        ("deliver", f"webhook:http://{host}/")
        for host in ("127.0.0.1", "localhost", "10.1.2.3", "[::1]", "169.254.169.254", "[::ffff:10.0.0.1]")
    ),
    *(
        ("deliver", f"webhook:http://{host}/")
        for host in ("[64:ff9b::a00:1]", "[2002:7f00:1::]", "0", "127.1", "0x7f000001", "2130706433", "u:p@example.com", "a b.example")
    ),
    *(("memory", value) for value in ("write", True, ["read"])),
    *(("missed", value) for value in ("all", 1)),
    *(("timeout", value) for value in (0, -1, 86_401, "5", True)),
    *(("max_tokens", value) for value in (0, "5", 1.5)),
    *(("model", value) for value in ("", "m" * 257, 5)),
    *(("enabled", value) for value in ("yes", 1)),
    *(("session_id", value) for value in ("a\nb", "x" * 257, 5)),
    *(("session_key", value) for value in ("a\tb", "x" * 257, 5)),
    *(("skills", value) for value in (["web"], "web")),
    *((field, "x") for field in ("workdir", "script", "enabled_toolsets", "context_from", "provider", "base_url", "x_unknown", "id")),
]


@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda v: repr(v)[:40])
async def test_43_what_cannot_be_honoured_is_refused(light: World, field: str, value: Any) -> None:
    """A field that is wrong, unknown or not supported is a 400 that names it, and nothing is stored."""
    response = await light.post("/api/jobs", {"name": "n", "prompt": "p", "schedule": "every 1h", field: value})
    assert error(response, 400)["param"] == field
    assert (await light.get("/api/jobs?include_disabled=true"))["jobs"] == []


@pytest.mark.parametrize("field", ["name", "schedule", "prompt"])
async def test_43_what_is_missing_is_named(light: World, field: str) -> None:
    """Name, schedule and prompt are required."""
    wish = {"name": "n", "prompt": "p", "schedule": "every 1h"}
    del wish[field]
    assert error(await light.post("/api/jobs", wish), 400)["param"] == field


async def test_43_everything_else_hermes_clients_send_works(light: World) -> None:
    """Empty skills, an explicit local delivery, a repeat and a paused start are taken."""
    job = await made(light, skills=[], deliver="local", repeat=3, enabled=False)
    assert (job["enabled"], job["state"], job["repeat"]["times"], job["next_run_at"]) == (False, "paused", 3, None)


@pytest.mark.parametrize(
    "fields",
    [{}, {"schedule": "never"}, {"repeat": 0}, {"id": "evil"}, {"unknown": 1}, {"session_id": "s"}, {"name": None}, {"deliver": "fax"}],
)
async def test_a_bad_change_changes_nothing(light: World, fields: Json) -> None:
    """A change with anything wrong in it is refused whole."""
    job = await made(light)
    response = await light.client.patch(f"/api/jobs/{job['id']}", json={**fields, **({"prompt": "other"} if fields else {})})
    error(response, 400)
    assert await job_of(light, job) == job


async def test_a_session_of_another_key_is_refused(world: World) -> None:
    """A job cannot be put into a session that belongs to another key; another tenant's equal id is another session."""
    await world.say("Hi.", "s", "mine")
    wish = {"name": "n", "prompt": "p", "schedule": "every 1h", "session_id": "s", "session_key": "theirs"}
    error(await world.post("/api/jobs", wish), 400, "foreign_session", "session_id")
    error(await world.post("/api/jobs", {**wish, "session_key": "mine"}, {ID: "t"}), 400, "invalid_session_id", "session_id")
    assert (await world.get("/api/jobs"))["jobs"] == []
    assert (await made(world, session_id="s"))["session_id"] == "s"


async def test_jobs_of_another_tenant_are_not_there(two: tuple[World, World]) -> None:
    """Neither listed, nor read, nor changed, nor run: 404, as for a job that never was."""
    mine, theirs = two
    job = await made(mine)
    assert (await theirs.get("/api/jobs?include_disabled=true"))["jobs"] == []
    for method, path in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/run"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("GET", "/runs"),
    ):
        body = {"name": "x"} if method == "PATCH" else None
        error(await theirs.client.request(method, f"/api/jobs/{job['id']}{path}", json=body), 404, "job_not_found")
    error(await theirs.client.get("/api/jobs/not-an-id"), 400, "invalid_job_id")
    assert (await job_of(mine, job))["name"] == "report"


# -- life of a job -------------------------------------------------------------------------------------------------------------


async def test_a_job_is_made_changed_and_deleted(world: World) -> None:
    """Create, look at, change, delete; a changed schedule has new instants."""
    job = await made(world)
    changed = (await change(world, job, name="renamed", schedule="every 1h", prompt="New.", timezone="Asia/Tokyo"))["job"]
    assert (changed["name"], changed["prompt"], changed["schedule"]["minutes"]) == ("renamed", "New.", 60)
    assert 3500 < instant(changed["next_run_at"]) - time.time() < 3601
    assert changed["next_run_at"].endswith("+09:00")
    response = await world.client.delete(f"/api/jobs/{job['id']}")
    assert response.json() == {"ok": True}
    error(await world.client.get(f"/api/jobs/{job['id']}"), 404, "job_not_found")


async def test_a_paused_job_does_not_fire(world: World) -> None:
    """Neither by its plan; resumed, it fires from its next instant on."""
    job = await made(world, schedule=soon(0.5))
    assert (await do(world, job, "pause"))["job"]["enabled"] is False
    other = await made(world, schedule=soon(0.5))
    await ended(world, other)
    assert await runs_of(world, job) == []
    every = await made(world, schedule="every 1m")
    await do(world, every, "pause")
    resumed = (await do(world, every, "resume"))["job"]
    assert (resumed["state"], resumed["paused_at"]) == ("scheduled", None)
    assert 0 < instant(resumed["next_run_at"]) - time.time() <= 60


async def test_a_key_of_its_own_makes_a_job_once(world: World) -> None:
    """With an `Idempotency-Key` a job is made, and run, once."""
    wish, headers = {"name": "n", "prompt": "p", "schedule": "every 1h"}, {"Idempotency-Key": "k"}
    first, again = await world.post("/api/jobs", wish, headers), await world.post("/api/jobs", wish, headers)
    assert (again.json(), again.headers[REPLAYED]) == (first.json(), "true")
    error(await world.post("/api/jobs", {**wish, "name": "m"}, headers), 409, "idempotency_key_conflict")
    job = first.json()["job"]
    for _ in range(2):
        await world.client.post(f"/api/jobs/{job['id']}/run", headers=headers)
    await ended(world, job)
    await asyncio.sleep(0.5)
    assert len(await runs_of(world, job)) == 1


async def test_a_failing_job_is_paused_in_the_end(world: World) -> None:
    """Each failure can be read; after five in a row the job is paused and says why; a success in between counts anew."""
    job = await made(world)
    refusal = errors.ModelDenied("The model refused the credential.")
    world.model.script += [refusal, "fine", *[refusal] * planning.MOST_FAILURES]
    for _ in range(planning.MOST_FAILURES + 1):
        run = await ran(world, job)
    assert (await job_of(world, job))["state"] == "scheduled"
    assert (run["status"], run["error_code"], run["output"]) == ("failed", "upstream_auth", None)
    await ran(world, job)
    found = await job_of(world, job)
    assert (found["state"], found["enabled"], found["last_status"]) == ("paused", False, "error")
    assert "5 runs in a row failed" in found["paused_reason"]
    assert "credential" in found["paused_reason"]
    assert await world.messages(f"job:{job['id']}") == [("user", "Report."), ("assistant", "fine")]


async def test_a_run_that_takes_too_long_is_stopped(world: World) -> None:
    """A run that exceeds its time has failed, and left nothing."""
    world.model.gate.clear()
    job = await made(world, timeout=1)
    run = await ran(world, job)
    world.model.gate.set()
    assert (run["status"], run["error_code"]) == ("failed", "job_timeout")
    assert (await job_of(world, job))["last_error"] == "it took longer than 1 seconds"
    error(await world.client.get(f"/api/sessions/job%3A{job['id']}"), 404)


async def test_instructions_model_and_limit_reach_the_model(world: World) -> None:
    """What a job says about how it is to be answered is in the request to the model."""
    job = await made(world, instructions="Be brief.", model="other-model", max_tokens=77)
    await ran(world, job)
    sent = world.model.requests[-1]
    assert (sent["model"], sent["max_tokens"], sent["messages"][0]) == ("other-model", 77, {"role": "system", "content": "Be brief."})


# -- deliveries ------------------------------------------------------------------------------------------------------------------


class Receiver:
    """Takes deliveries; answers as its script says, 200 where that is empty."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.got.append(({"": head[0], **headers}, body))
        status = self.answers.pop(0) if self.answers else 200
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver of deliveries on this machine."""
    found = Receiver()
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0) as server:
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook/?a=b"
        yield found


async def delivered(world: World, job: Json, state: str) -> Json:
    """The newest run, once its delivery is as it should be."""
    found: list[Json] = []

    async def there() -> bool:
        found[:] = await runs_of(world, job)
        return bool(found) and (found[0]["delivery"] or {}).get("status") == state

    await until(there, 10)
    return found[0]


async def test_a_run_is_delivered_signed(tmp_path: Path, database_url: str, receiver: Receiver) -> None:
    """The body holds job and run, and the signature proves it with the job's secret."""
    async with worlds.running(tmp_path, database_url, webhook_private=True) as world:
        job = await made(world, deliver=f"webhook:{receiver.url}")
        await ran(world, job)
        run = await delivered(world, job, "delivered")
    ((head, body),) = receiver.got
    told = json.loads(body)
    assert head[""] == "POST /hook/?a=b HTTP/1.1"
    assert (told["type"], told["data"]["job"], told["data"]["run"]["output"]) == (
        "job.run.done",
        {"id": job["id"], "name": "report"},
        "Reply 1.",
    )
    signed = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + body
    secret = base64.b64decode(job["webhook_secret"].removeprefix("whsec_"))
    assert head["webhook-signature"] == "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
    assert head["webhook-id"] == run["id"]
    assert [attempt["status"] for attempt in run["delivery"]["attempts"]] == [200]


async def test_a_delivery_is_tried_again(tmp_path: Path, receiver: Receiver) -> None:
    """What is not answered with 2xx comes again after a pause under the same id; each try is in the log; an error is delivered, too."""
    ahead = 0.0
    receiver.answers += [500, 302]
    async with worlds.running(tmp_path, webhook_private=True, clock=lambda: time.time() + ahead) as world:
        job = await made(world, deliver=f"webhook:{receiver.url}")
        world.model.script.append(errors.ModelDenied("No."))
        await ran(world, job)
        for tries, pause in enumerate(delivery.PAUSES[:2], 1):
            run = await tried(world, job, tries)
            assert run["delivery"]["status"] == "pending"
            ahead += pause
        run = await delivered(world, job, "delivered")
        assert [attempt["status"] for attempt in run["delivery"]["attempts"]] == [500, 302, 200]
        assert (await job_of(world, job))["last_delivery_error"] is None
        assert len({head["webhook-id"] for head, _ in receiver.got}) == 1
        assert json.loads(receiver.got[0][1])["type"] == "job.run.failed"


async def test_a_delivery_is_given_up_in_the_end(tmp_path: Path, receiver: Receiver) -> None:
    """After the last pause nothing more is tried, and the job says what was wrong."""
    ahead = 0.0
    receiver.answers += [500] * 10
    async with worlds.running(tmp_path, webhook_private=True, clock=lambda: time.time() + ahead) as world:
        job = await made(world, deliver=f"webhook:{receiver.url}")
        await ran(world, job)
        for tries, pause in enumerate(delivery.PAUSES, 1):
            await tried(world, job, tries)
            ahead += pause
        await delivered(world, job, "failed")
        assert len(receiver.got) == len(delivery.PAUSES) + 1
        assert (await job_of(world, job))["last_delivery_error"] == "answered with status 500"


async def tried(world: World, job: Json, count: int) -> Json:
    """The newest run, once so many tries of its delivery are in the log."""
    found: list[Json] = []

    async def there() -> bool:
        found[:] = await runs_of(world, job)
        return len(found[0]["delivery"]["attempts"]) >= count

    await until(there, 10)
    return found[0]


async def test_a_name_that_turns_private_is_not_connected_to(receiver: Receiver) -> None:
    """The very address that would be connected to is looked at, whatever the name was when the job was made."""
    port = int(receiver.url.split(":")[2].split("/")[0])
    pool = connections.Pool(host="localhost", port=port, tls=False, connect_limit=5, screen=delivery.screened("localhost"))
    with pytest.raises(OSError, match="private address"):
        await pool.connection()
    pool.close()
    assert receiver.got == []


async def test_a_job_made_when_private_addresses_were_allowed_is_not_delivered(tmp_path: Path, receiver: Receiver) -> None:
    """The setting counts at the time of the delivery."""
    async with worlds.running(tmp_path, webhook_private=True) as world:
        job = await made(world, deliver=f"webhook:{receiver.url}")
    async with worlds.running(tmp_path) as world:
        await ran(world, job)
        run = await tried(world, job, 1)
    assert "private address" in run["delivery"]["attempts"][0]["error"]
    assert receiver.got == []
