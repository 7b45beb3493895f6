"""`mnemon chat`: a conversation in the terminal with a running server.

It sends the newest message and nothing else: the server remembers. What it knows of the server is its address and a key.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import re
import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from mnemon import app as composition
from mnemon.cli import options
from mnemon.config import SettingError, Settings, http_url
from mnemon.core import ids
from mnemon.edge import identity
from mnemon.turn import commands

CONNECT_SECONDS = 10
SILENCE_SECONDS = 60  # the server says something every 15 seconds, if only that it is still there
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how to reach a server that listens on all addresses
LOOPBACK = ("127.0.0.1", "::1", "localhost")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COMMAND = re.compile(r"/[A-Za-z]+(?!\S)")  # a path has more to it
HINT = "/new starts afresh, Ctrl-C stops a reply, /quit or Ctrl-D leaves, /help says more."
HELP = """\
/new, /reset  start afresh: a new session, under the same key if there is one
/help         these lines
/quit         leave, as Ctrl-D does
//text        send /text to the model; a space in front does the same
Ctrl-C        stop listening to a reply; the server completes and remembers it"""


class Failure(Exception):
    """The message got no reply; the text says why. `final` if the next one would fare no better."""

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


@dataclass(kw_only=True)
class Conversation:
    """One conversation on one server. `session` follows the server: `/new` and compression give it another id."""

    url: str
    api_key: str
    model: str
    session: str | None
    key: str | None
    unannounced: bool = False
    finish_reason: str | None = None

    def say(self, text: str) -> Generator[str, None, None]:
        """Send a message; the reply, piece by piece. Closing the generator stops listening. Raises `Failure`."""
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(SILENCE_SECONDS)
            connection.request("POST", f"{urlsplit(self.url).path}/v1/chat/completions", self._body(text), self._headers())
            response = connection.getresponse()
            if response.status != 200:
                raise refused(response.status, response.read(), self.url)
            yield from self._pieces(response)
        except TimeoutError:
            raise Failure(f"the server at {self.url} does not answer") from None
        except ConnectionRefusedError:
            raise Failure(
                f"no server answers at {self.url}: start one with `mnemon serve`, or name another with --url", final=True
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Failure(f"the connection to {self.url} failed: {str(error) or type(error).__name__}") from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        return kind(address.hostname or "", address.port, timeout=CONNECT_SECONDS)

    def _body(self, text: str) -> bytes:
        return json.dumps({"model": self.model, "stream": True, "messages": [{"role": "user", "content": text}]}).encode()

    def _headers(self) -> dict[str, str | bytes]:
        headers: dict[str, str | bytes] = {"Content-Type": "application/json", "Authorization": f"Bearer {self.api_key}".encode()}
        if self.session is not None:
            headers[identity.SESSION_ID] = identity.encoded(self.session)
        if self.key is not None:
            headers[identity.SESSION_KEY] = identity.encoded(self.key)
        return headers

    def _pieces(self, response: http.client.HTTPResponse) -> Iterator[str]:
        self.finish_reason = None
        for event in events(response):
            if "error" in event:
                raise Failure(str(event["error"].get("message") or "the reply failed"))
            for choice in event.get("choices") or ():
                delta = choice.get("delta") or {}
                yield delta.get("content") or delta.get("refusal") or ""
                self.finish_reason = choice.get("finish_reason") or self.finish_reason
            if told := (event.get("hermes") or {}).get("session_id"):
                self.session = told
        if not self.finish_reason:
            raise Failure("the connection broke before the reply was complete")


def events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON of a stream of server-sent events, up to its end."""
    for line in lines:
        if line.startswith(b"data:"):
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)


def refused(status: int, body: bytes, url: str) -> Failure:
    """What a status other than success means."""
    if status == 401:
        return Failure(f"the server at {url} does not accept this key: give another with --api-key or MNEMON_API_KEY", final=True)
    try:
        return Failure(f"{json.loads(body)['error']['message']} ({status})")
    except (ValueError, LookupError, TypeError):
        return Failure(f"{url} answered with status {status}: is this a Mnemon server?", final=True)


@click.command()
@click.option("-m", "--message", metavar="TEXT", help="Send this one message, print the reply, and end.")
@click.option(
    "--session", metavar="ID", help="Continue this session, or begin it under this name.  [default: a new one, whose id is shown]"
)
@click.option("--key", metavar="KEY", help="Session key: what was said under a key is remembered in all its sessions.")
@click.option("--url", metavar="URL", help="The server's address.  [default: the one `mnemon serve` listens on with these settings]")
@click.option("--model", metavar="M", default="mnemon", show_default=True, help="Model to ask for.")
@click.option("--api-key", metavar="VALUE", help="API key.  [default: MNEMON_API_KEY, or the one made at the first start]")
@options.settings_options("data_dir")
def chat(*, message: str | None, session: str | None, key: str | None, url: str | None, model: str, **flags: Any) -> None:
    """Talk to a running server.

    Type a message and press Enter; /new starts afresh, Ctrl-C stops a reply, /quit or Ctrl-D leaves, /help says more. With piped
    input each line is a message. Replies go to the standard output, everything else to the standard error.
    """
    settings = options.load(flags)
    with options.told():
        talk = Conversation(
            url=address(settings, url),
            api_key=credential(settings, url),
            model=model,
            session=name("--session", session),
            key=name("--key", key),
        )
    if talk.session is None and talk.key is None:
        talk.session, talk.unannounced = ids.session(), True
    if message is not None:
        once(talk, [message])
    elif sys.stdin.isatty() and sys.stdout.isatty():
        dialogue(talk)
    else:
        once(talk, sys.stdin)


def name(option: str, text: str | None) -> str | None:
    """A session's name under the server's rules. Raises `Invalid`."""
    return None if text is None else identity.checked(text, code="invalid_request", param=option)


def address(settings: Settings, url: str | None) -> str:
    """Where the server is, without `/v1`. Raises `SettingError`."""
    if url is None:
        host = EVERYWHERE.get(settings.host, settings.host)
        return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
    try:
        found = http_url(url).removesuffix("/v1")
        urlsplit(found).port  # noqa: B018 - raises if it is none
    except ValueError:
        raise SettingError(f"--url must be an address such as http://127.0.0.1:8642, not {url!r}") from None
    return found


def credential(settings: Settings, url: str | None) -> str:
    """The API key to send. The one in the data directory is this machine's and is sent to no other. Raises `SettingError`."""
    if settings.api_key is not None:
        return settings.api_key
    file = settings.data_dir / composition.KEY_FILE
    if (url is None or urlsplit(url).hostname in LOOPBACK) and file.exists():
        return file.read_text().strip()
    raise SettingError("an API key is needed: give it with --api-key or MNEMON_API_KEY")


def once(talk: Conversation, lines: Iterable[str]) -> None:
    """Send each line, stop at the first failure."""
    try:
        for line in lines:
            text = line.rstrip("\r\n")
            if text.strip() == "/quit":
                return
            if text.strip():
                said(talk, text)
    except Failure as failure:
        options.stop(str(failure))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def dialogue(talk: Conversation) -> None:
    """Ask and answer until the person leaves."""
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # line editing and history for `input`
    note(HINT)
    while True:
        try:
            text = input("> ").rstrip()
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            note(HINT)
            continue
        if text.strip() == "/quit":
            return
        if text:
            exchange(talk, text)


def exchange(talk: Conversation, text: str) -> None:
    """One message of a dialogue. What fails is said, and the next can be tried."""
    try:
        said(talk, text)
    except KeyboardInterrupt:
        note("(stopped listening; the server completes the reply and remembers it)")
    except Failure as failure:
        if failure.final:
            options.stop(str(failure))
        note(f"mnemon: {failure}")


def said(talk: Conversation, text: str) -> None:
    """One line of a person: a command of ours, or a message. Raises `Failure`."""
    word = COMMAND.match(text)
    if text.strip() == "/help":
        note(HELP)
    elif word and text.strip() not in commands.COMMANDS:
        raise Failure(f"{text.strip()!r} is no command (/help lists them); to send it to the model, begin with //")
    else:
        plain = text.removeprefix("/")
        # The server would take a bare /new for the command, whatever stood before it here.
        answer(talk, plain if text.startswith("//") and plain.strip() not in commands.COMMANDS else text)


def answer(talk: Conversation, text: str) -> None:
    """Send a message and print the reply as it comes."""
    shown = sys.stdout.isatty()
    before = talk.session
    begun = False
    with contextlib.closing(talk.say(text)) as pieces:
        try:
            for piece in pieces:
                begun = True
                # What a model says must not move the cursor or rename the window.
                click.echo(CONTROL.sub("", piece) if shown else piece, nl=False)
        except KeyboardInterrupt:
            begun = True  # the terminal has written ^C
            raise
        finally:
            if begun:
                click.echo()
    if talk.finish_reason == "length":
        note("(the reply was cut off: it reached the most tokens the model may write)")
    if talk.unannounced or (text.strip() in commands.COMMANDS and talk.session != before):
        note(f"Session {talk.session} (continue it later with --session {talk.session})")
        talk.unannounced = False


def note(text: str) -> None:
    click.echo(text, err=True)
