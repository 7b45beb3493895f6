"""The examples in the docs are run, as they stand, against a real server with the built-in model."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = "http://127.0.0.1:8642"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"^export MNEMON_API_KEY=.*\n", re.MULTILINE)

# Of each page, what its runnable examples print, in the order in which they stand there. A new example is a new line here.
PAGES = {
    "README.md": [r"Noted.*in Rust.*\n?.*\"content\":\"[^\"]*Rust", r"PostgreSQL 15"],
    "docs/quickstart.md": [r"Noted", r"\"content\":\"[^\"]*5433", r"Alex", r"\"role\":\"user\",\"content\":\"My name is Alex"],
    "docs/howto/keep-a-conversation.md": [r"", r"\S", r"\"id\":\"user:43\".*\"has_system_prompt\":true"],
    "docs/howto/long-term-memory-scope.md": [r"Noted.*Miso.*\n?.*\"content\":\"[^\"]*Miso"],
    "docs/howto/retry-safely.md": [r"Noted", r"\Aid: 5\n(.*\n)*data: \[DONE\]"],
    "docs/howto/see-what-was-sent.md": [r"\"object\":\"mnemon.context.preview\"", r"receipt_not_found"],
}


def examples(page: str) -> list[tuple[str, str]]:
    """(language, text) of the examples of a page that talk to a server."""
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [(language, text) for language, text in found if language == "python" or "curl " in text]


def run(language: str, text: str, server: servers.Server) -> str:
    """What an example prints. Only the address is another, and the key comes from outside."""
    command = [sys.executable, "-"] if language == "python" else ["sh", "-eu"]
    script = PLACEHOLDER.sub("", text).replace(ADDRESS, server.url)
    environment = {"PATH": os.environ["PATH"], "MNEMON_API_KEY": server.key}
    done = subprocess.run(command, input=script, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """One server for all pages: their sessions have names of their own, or do not mind company."""
    with servers.running() as running:
        yield running


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples use curl")
@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str, server: servers.Server) -> None:
    """Every example of the page runs, and prints what the page says."""
    for (language, text), pattern in zip(examples(page), PAGES[page], strict=True):
        assert re.search(pattern, run(language, text, server)), text


def test_settings_file(tmp_path: Path) -> None:
    """The settings file shown in the reference is understood."""
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    found = re.search(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found
    (tmp_path / "mnemon.toml").write_text(found[1])
    done = servers.command("check", "--data-dir", str(tmp_path), "--upstream-url", "http://127.0.0.1:9/v1")
    assert "settings        understood" in done.stdout
