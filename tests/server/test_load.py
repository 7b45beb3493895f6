"""Many at once, and many in a row."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import time
from pathlib import Path

import httpx2

from tests import servers
from tests.server.clients import asked, client
from tests.servers import Server


async def test_j48_ten_streams_run_side_by_side(server: Server) -> None:
    """Ten slow streams take as long as one, each begins at once and flows, and lists are quick meanwhile."""
    lists = []

    async def stream(number: int) -> tuple[float, float, str]:
        """Time of the first word, the longest gap, and the text."""
        begun = last = time.monotonic()
        first, gap, text = 0.0, 0.0, ""
        async for chunk in await sdk.chat.completions.create(**asked("[[words 30]] [[slow 1.5]]", f"s{number}", stream=True)):
            now = time.monotonic()
            if chunk.choices[0].delta.content:
                first = first or now - begun
                gap = max(gap, now - last) if text else 0.0
                text += chunk.choices[0].delta.content
            last = now
        return first, gap, text

    async def watch() -> None:
        async with httpx2.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}) as lister:
            while True:
                begun = time.monotonic()
                assert (await lister.get("/api/sessions")).status_code == 200
                lists.append(time.monotonic() - begun)
                await asyncio.sleep(0.1)

    async with client(server) as sdk:
        watcher = asyncio.create_task(watch())
        begun = time.monotonic()
        found = await asyncio.gather(*(stream(n) for n in range(10)))
        took = time.monotonic() - begun
        watcher.cancel()
    assert all(text == " ".join(f"word{n}" for n in range(1, 31)) for _, _, text in found)
    assert took < 4.5
    assert sorted(first for first, _, _ in found)[5] < 0.5
    assert sorted(gap for _, gap, _ in found)[5] < 0.3
    assert sorted(lists)[len(lists) // 2] < 0.1


def test_j49_memory_does_not_grow_with_requests(tmp_path: Path) -> None:
    """After 2,000 stateless requests the process holds hardly more than after the first few hundred."""

    def resident(server: Server) -> int:
        """KiB in memory."""
        status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))

    def talk(connection: http.client.HTTPConnection, requests: int) -> None:
        for number in range(requests):
            said = {"role": "user", "content": f"Number {number}. My name is Alex."}
            body = json.dumps({"messages": [said], "stream": number % 4 == 0})
            connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {server.key}"})
            response = connection.getresponse()
            assert b"Alex" in response.read()
            assert response.status == 200

    with servers.running(data_dir=tmp_path) as server, contextlib.closing(server.connect()) as connection:
        talk(connection, 400)
        before = resident(server)
        talk(connection, 2000)
        after = resident(server)
        assert after < 150 * 1024
        assert after - before < 12 * 1024
        assert server.call("GET", "/api/sessions").body["data"] == []
