"""Connections to the model's server: kept, told apart, verified, and never taken for more than they are."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mnemon.core import errors
from mnemon.model import connections
from mnemon.model.connections import Pool
from tests.unit.test_upstream import CLOSE, HANG, OK, REQUEST, WHOLE, Server, Step, chunked, http, talking, upstream

DATA = Path(__file__).parent / "data"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"], scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """The server runs on uvloop, where there is one, and the commands on asyncio's own loop."""
    if request.param:
        pytest.importorskip("uvloop")
    return "asyncio", {"use_uvloop": request.param}


@asynccontextmanager
async def pooled(server: Server, host: str = "127.0.0.1") -> AsyncIterator[Pool]:
    """Connections to a server of the test's own."""
    pool = Pool(host=host, port=server.port, tls=False, connect_limit=5.0)
    try:
        yield pool
    finally:
        pool.close()


def certified() -> ssl.SSLContext:
    """A server's side of TLS, with a certificate for localhost that nobody trusts by itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "localhost.pem", DATA / "localhost.key")
    return context


async def test_a_certificate_of_a_known_authority_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS the same answers come, if the certificate is of an authority that the machine knows."""
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "localhost.pem"))
    async with Server([OK], tls=certified()) as server:
        model = upstream(f"https://localhost:{server.port}/v1")
        assert await model.complete(REQUEST) == WHOLE
        assert await model.complete(REQUEST) == WHOLE
        await model.close()
        assert server.connections == 1


async def test_an_unknown_certificate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of nobody's, or for another name, gets no request and no key."""
    async with Server([OK], tls=certified()) as server:
        for known, host in ((False, "localhost"), (True, "127.0.0.1")):
            if known:
                monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "localhost.pem"))
            model = upstream(f"https://{host}:{server.port}/v1")
            with pytest.raises(errors.ModelError):
                await model.complete(REQUEST)
            await model.close()
        assert server.requests == []


async def test_an_address_that_leads_nowhere_is_passed_over() -> None:
    """Of a name with several addresses the one that answers is used."""
    async with Server([OK]) as server, pooled(server, "localhost") as pool:
        connection = await pool.connection()
        await connection.ask(b"GET / HTTP/1.1\r\n\r\n", silence=1, total=1)
        assert connection.status == 200


async def test_more_than_was_asked_for_is_not_taken() -> None:
    """What follows a response is not part of it, and not the answer to the next request."""
    async with talking([OK + http(b'{"not": "asked"}')], [OK]) as (model, server):
        assert await model.complete(REQUEST) == WHOLE
        assert await model.complete(REQUEST) == WHOLE
        assert server.connections == 2


async def test_words_before_the_answer_are_passed_over() -> None:
    """A server may say first that the answer is on its way, even more than once."""
    async with talking([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK]) as (model, server):
        assert await model.complete(REQUEST) == WHOLE
        assert await model.complete(REQUEST) == WHOLE
        assert server.connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 2 * connections.LARGEST_HEAD + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * connections.LARGEST_HEAD + b"\r\n",
        CHUNKED + b"zz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    ],
)
async def test_what_is_no_answer_is_a_bad_reply(reply: bytes) -> None:
    """A response that breaks the rules of HTTP, or is of no use, is a bad reply and ends its connection."""
    async with talking([reply, HANG]) as (model, server):
        with pytest.raises(errors.BadReply):
            await model.complete(REQUEST)
        await asyncio.wait_for(server.gone.wait(), 2)


async def test_an_unknown_compression_is_a_bad_reply() -> None:
    """An answer that cannot be unpacked is none; it is not asked for again."""
    async with talking([http(b"packed", "200 OK", "application/json", "Content-Encoding: x-secret")]) as (model, server):
        with pytest.raises(errors.BadReply):
            await model.complete(REQUEST)
        assert len(server.requests) == 1


async def test_a_torn_chunked_answer_is_no_answer() -> None:
    """A chunked body that ends before its last chunk broke, though what came is JSON by itself."""
    async with talking([CHUNKED + chunked(json.dumps(WHOLE).encode()), CLOSE]) as (model, server):
        with pytest.raises(errors.ModelError):
            await model.complete(REQUEST)
        assert len(server.requests) == 1


async def test_a_connection_is_not_trusted_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was idle for a while is closed, and another one opened in its place."""
    async with talking([OK]) as (model, server):
        await model.complete(REQUEST)
        monkeypatch.setattr(connections, "KEPT_SECONDS", 0.0)
        await model.complete(REQUEST)
        assert server.connections == 2
        await asyncio.wait_for(server.gone.wait(), 2)


async def test_a_slow_reader_is_not_flooded() -> None:
    """What nobody reads is left in the network after a while; in the end all of it is there."""
    piece = b"x" * 2**20
    steps: list[Step] = [CHUNKED, *(chunked(piece) for _ in range(30)), chunked(b"")]
    async with Server(steps) as server, pooled(server) as pool:
        connection = await pool.connection()
        await connection.ask(b"GET / HTTP/1.1\r\n\r\n", silence=5, total=5)
        await asyncio.sleep(0.3)
        assert connection.received < 4 * 2**20
        size = 0
        while data := await connection.more():
            size += len(data)
        assert size == 30 * 2**20


@pytest.mark.parametrize(
    ("given", "line", "host"),
    [
        ("http://127.0.0.1:{}/ü b/%20", "/%C3%BC%20b/%20/chat/completions", "127.0.0.1:{}"),
        ("http://LOCALHOST:{}", "/chat/completions", "localhost:{}"),
    ],
)
async def test_an_address_is_written_as_http_wants_it(given: str, line: str, host: str) -> None:
    """What cannot stand in a request line is encoded, what is encoded already stays, and the host is named."""
    async with Server([OK]) as server:
        model = upstream(given.format(server.port))
        await model.complete(REQUEST)
        await model.close()
    assert server.requests[0][0] == f"POST {line} HTTP/1.1"
    assert server.requests[0][1]["host"] == host.format(server.port)


@pytest.mark.parametrize(
    "wrong", ["http://x:99999/v1", "http://x:y/v1", "http://" + "a" * 70 + "/v1", "http://[::1/v1", "http://a b/v1", "http://a\r\nX: y/v1"]
)
def test_an_address_that_is_none_is_refused(wrong: str) -> None:
    """A port or a host that cannot be is refused at once, and nothing can be smuggled into a request."""
    with pytest.raises(errors.Invalid) as caught:
        upstream(wrong)
    assert caught.value.param == "base_url"
