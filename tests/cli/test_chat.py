"""`mnemon chat` as a process, against a real server."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mnemon import cli
from tests import servers
from tests.servers import Server
from tests.upstream import Upstream

SESSION = re.compile(r"^Session (\S+)", re.MULTILINE)
PATIENCE = 60.0


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """The scripted model behind the server."""
    with servers.scripted_upstream() as running:
        yield running


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Server]:
    """One server for all tests of this file; each uses sessions of its own."""
    with servers.running(upstream=upstream) as running:
        yield running


def chat(server: Server, *args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """`mnemon chat` with the server's address and key in the settings."""
    port = server.url.rpartition(":")[2]
    settings = {"MNEMON_DATA_DIR": str(server.data_dir), "MNEMON_PORT": port, "MNEMON_API_KEY": server.key, **env}
    return servers.command("chat", *args, env=settings, stdin=stdin)


def error(*args: str, **env: str) -> str:
    """The one line with which a chat that cannot be held says why."""
    result = CliRunner(env=env).invoke(cli.main, ["chat", "--session", "s", "-m", "hi", *args])
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("mnemon: ")
    return line


def roles(server: Server, session: str) -> list[str]:
    """Who said something in a session, oldest first."""
    return [message["role"] for message in server.call("GET", f"/api/sessions/{session}/messages").body["data"]]


def test_one_message_and_its_reply(server: Server) -> None:
    """With -m the reply, and nothing else, is on the standard output; the new session's id is told beside it."""
    ended = chat(server, "-m", "hello there")
    assert ended.returncode == 0
    assert ended.stdout == "ECHO:hello there\n"
    [session] = SESSION.findall(ended.stderr)
    assert roles(server, session) == ["user", "assistant"]


def test_a_session_is_continued(server: Server, upstream: Upstream) -> None:
    """With --session the model sees what was said before, though only the newest message is sent."""
    for text in ("first", "second"):
        assert chat(server, "--session", "project: Ünï", "-m", text).stderr == ""
    assert [m["content"] for m in upstream.requests[-1]["messages"] if m["role"] != "system"] == ["first", "ECHO:first", "second"]
    assert roles(server, "project%3A%20%C3%9Cn%C3%AF") == ["user", "assistant"] * 2


def test_piped_lines_are_messages(server: Server) -> None:
    """Each line that is not empty is a message of one conversation, up to /quit."""
    ended = chat(server, "--session", "piped", stdin="one\n\n  two\n/quit\nthree\n")
    assert ended.stdout == "ECHO:one\nECHO:  two\n"
    assert ended.returncode == 0
    assert roles(server, "piped") == ["user", "assistant"] * 2


def test_new_rotates_the_session(server: Server, upstream: Upstream) -> None:
    """After /new the conversation goes on in the session that the server named, under the same key."""
    ended = chat(server, "--key", "a person", stdin="before\n/new\nafter\n")
    assert ended.stdout.splitlines()[::2] == ["ECHO:before", "ECHO:after"]
    assert ended.stdout.splitlines()[1].startswith("Started a new conversation")
    [session] = SESSION.findall(ended.stderr)
    assert roles(server, session) == ["user", "assistant"]
    assert server.call("GET", f"/api/sessions/{session}").body["session"]["session_key"] == "a person"
    assert "before" not in [m["content"] for m in upstream.requests[-1]["messages"] if m["role"] == "user"]


def test_a_key_alone_continues_its_transcript(server: Server, upstream: Upstream) -> None:
    """With --key and no --session the key's current conversation goes on, and no session is made up."""
    assert chat(server, "--key", "the same", "-m", "one").stderr == ""
    assert chat(server, "--key", "the same", "-m", "two").stderr == ""
    assert [m["content"] for m in upstream.requests[-1]["messages"] if m["role"] == "user"] == ["one", "two"]


def test_compression_is_followed(upstream: Upstream) -> None:
    """When the server continues a session under another id, the client goes along: all turns are in one lineage."""
    with servers.running(upstream=upstream, env={"MNEMON_CONTEXT_BUDGET": "512", "MNEMON_RECALL_TOKENS": "0"}) as small:
        lines = [f"note {number}: " + "some words to fill the budget " * 6 for number in range(12)]
        ended = chat(small, "--session", "long", stdin="\n".join(lines))
        assert len(ended.stdout.splitlines()) == len(lines)
        listed = small.call("GET", "/api/sessions").body["data"]
        assert [session["_lineage_root_id"] for session in listed] == ["long"]
        assert listed[0]["id"] != "long"
        assert roles(small, "long").count("user") == len(lines)


def test_the_reply_is_shown_as_it_comes(server: Server) -> None:
    """The first words are there long before the last."""
    env = {"MNEMON_API_KEY": server.key}
    with servers.start(
        "chat", "--url", f"{server.url}/v1/", "-m", "[[words 4]] [[slow 2]]", env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        first = os.read(process.stdout.fileno(), 100)
        began = time.monotonic()
        rest = process.stdout.read()
        assert time.monotonic() - began > 0.7
    assert first.startswith(b"word1 ")
    assert (first + rest).endswith(b"word4\n")


def test_the_key_of_the_data_directory_is_used() -> None:
    """Beside a server on its defaults no key need be given; it is sent to no other machine."""
    with servers.running(env={"MNEMON_API_KEY": None}) as server:
        env = {"MNEMON_DATA_DIR": str(server.data_dir)}
        ended = servers.command("chat", "--url", server.url, "-m", "My name is Alex.", env=env)
        assert "Alex" in ended.stdout
        assert "an API key is needed" in error("--url", "http://192.0.2.1:8642", **env)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """Nobody at the address is one line that says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    line = error(MNEMON_PORT=port, MNEMON_API_KEY="k", MNEMON_DATA_DIR=str(tmp_path))
    assert f"no server answers at http://127.0.0.1:{port}: start one with `mnemon serve`" in line


def test_a_key_that_is_not_accepted(server: Server) -> None:
    """A refused key is one line that names the ways to give another."""
    assert "does not accept this key" in error("--url", server.url, "--api-key", "wrong")


def test_what_the_server_refuses_is_told(server: Server) -> None:
    """Its own message is shown, with the status: a model that fails, a key that does not fit the session."""
    url = ("--url", server.url, "--api-key", server.key)
    assert error(*url, "-m", "[[fail 500]]").endswith("(502)")
    chat(server, "--session", "bound", "--key", "one", "-m", "hi")
    assert "(409)" in error(*url, "--session", "bound", "--key", "two")


def test_a_reply_that_breaks_off_is_an_error(server: Server) -> None:
    """What came is shown, and then why no more does."""
    ended = chat(server, "--session", "broken", stdin="[[cut 2]] a b c d e\nnever sent\n")
    assert ended.stdout == "ECHO:[[cut 2]] \n"
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert line.startswith("mnemon: The model")


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    """An address that is none and a session that cannot be named are refused before anything is sent."""
    env = {"MNEMON_API_KEY": "k", "MNEMON_DATA_DIR": str(tmp_path)}
    assert "--url must be an address such as" in error("--url", "localhost:8642", **env)
    assert "--url must be an address such as" in error("--url", "http://localhost:99999", **env)
    assert "--session holds a control character" in error("--session", "a\x07b", **env)


def test_a_session_is_announced_once_it_exists(server: Server) -> None:
    """A conversation that never began leaves no id behind to be continued."""
    failed = chat(server, "-m", "[[fail 500]]")
    assert failed.returncode == 2
    assert not SESSION.search(failed.stderr)
    assert len(SESSION.findall(chat(server, stdin="one\ntwo\n").stderr)) == 1


def test_commands_that_are_none_are_not_sent(server: Server, upstream: Upstream) -> None:
    """A mistyped command is explained and ends a script; `//` and a space send it; a path is no command."""
    before = len(upstream.requests)
    for line in ("/nwe", "/new please", "/help me"):
        ended = chat(server, "--session", "typo", "-m", line)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert f"{line!r} is no command" in ended.stderr
    helped = chat(server, "--session", "typo", "-m", "/help")
    assert (helped.returncode, helped.stdout) == (0, "")
    assert "/new, /reset" in helped.stderr
    assert len(upstream.requests) == before
    sent = chat(server, "--session", "typo", stdin="//nwe\n /nwe\n/etc/hosts is gone\n//new\n")
    assert sent.stdout == "ECHO:/nwe\nECHO: /nwe\nECHO:/etc/hosts is gone\nECHO://new\n"


def test_a_reply_that_was_cut_off_says_so(server: Server) -> None:
    """What ends by the model's limit is marked, beside the reply and not in it."""
    ended = chat(server, "--session", "cut", "-m", "[[say all of it]] [[truncate]]")
    assert ended.stdout == "all of it\n"
    assert "the reply was cut off" in ended.stderr
    assert "cut off" not in chat(server, "--session", "cut", "-m", "hi").stderr


class Terminal:
    """A person at a terminal: types, waits for what is shown, presses Ctrl-C and Ctrl-D."""

    def __init__(self, server: Server, *args: str) -> None:
        self.master, slave = pty.openpty()
        self.shown = ""
        env = {**os.environ, "MNEMON_API_KEY": server.key, "TERM": "dumb"}
        command = [sys.executable, "-m", "mnemon", "chat", "--url", server.url, *args]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)

    def type(self, text: str) -> None:
        """Type, without Enter unless the text ends with it."""
        self.shown = ""
        os.write(self.master, text.encode())

    def sees(self, text: str) -> None:
        """Wait until the text is shown."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.shown!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.shown += os.read(self.master, 4096).decode(errors="replace")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.shown = ""
        self.process.send_signal(signal.SIGINT)


@contextlib.contextmanager
def terminal(server: Server, *args: str) -> Iterator[Terminal]:
    """A terminal with `mnemon chat` in it, which has asked for the first message."""
    person = Terminal(server, *args)
    try:
        person.sees("> ")
        yield person
    finally:
        person.process.kill()
        person.process.wait()
        os.close(person.master)


def test_a_conversation_in_a_terminal(server: Server) -> None:
    """A person is shown how to leave, gets replies, and leaves with Ctrl-D."""
    with terminal(server) as person:
        assert "/quit or Ctrl-D leaves" in person.shown
        assert not SESSION.search(person.shown), "there is none yet"
        person.type("hello\n")
        person.sees("ECHO:hello\r\nSession sess_")
        person.sees("> ")
        person.type("/help\n")
        person.sees("//text")
        person.sees("> ")
        person.type("/models\n")
        person.sees("'/models' is no command")
        person.sees("> ")
        person.type("[[fail 500]]\n")
        person.sees("mnemon: ")
        person.sees("> ")
        person.type("/new\n")
        person.sees("Session sess_")
        person.sees("> ")
        person.type("\x04")
        assert person.process.wait(PATIENCE) == 0


def test_ctrl_c_stops_a_reply_and_nothing_else(server: Server) -> None:
    """The reply is no longer shown, the server completes it, and the conversation goes on."""
    with terminal(server, "--session", "interrupted") as person:
        person.type("[[words 30]] [[slow 3]]\n")
        person.sees("word3")
        person.interrupt()
        person.sees("stopped listening")
        person.sees("> ")
        assert "word30" not in person.shown
        person.type("go on\n")
        person.sees("ECHO:go on")
        person.sees("> ")
        person.interrupt()
        person.sees("Ctrl-D leaves")
        person.type("/quit\n")
        assert person.process.wait(PATIENCE) == 0
    assert roles(server, "interrupted") == ["user", "assistant"] * 2


def test_a_reply_cannot_take_over_the_terminal(server: Server) -> None:
    """Control characters in what a model says are not passed on to a terminal."""
    with terminal(server, "--session", "colours") as person:
        person.type("[[say fine \x1b[31mred]]\n".replace("\x1b", "\x16\x1b"))
        person.sees("fine")
        person.sees("red")
        person.sees("\r\n> ")
        assert "\x1b[31m" not in person.shown.partition("\n")[2]
