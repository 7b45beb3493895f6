"""Code and documentation say the same: what exists is documented, and what is documented exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from starlette.routing import Route

import mnemon
from mnemon import app, cli, config
from mnemon.core import metrics
from mnemon.core.errors import ModelError
from mnemon.core.records import Effective, Json
from mnemon.edge import discovery, errors, gateway, identity
from mnemon.edge.responses.wire import ResponseWire
from mnemon.edge.routes import routes
from mnemon.edge.runs import wire
from mnemon.turn.running import Outcome

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "mnemon"
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# Who may call what. A new route is a decision: it fails here until it stands in one of the two.
OPEN = {("GET", "/health"), ("GET", "/v1/health")}
WITH_KEY = {
    *((method, "/api/jobs") for method in ("GET", "POST")),
    *((method, "/api/jobs/{job_id}") for method in ("GET", "PATCH", "DELETE")),
    *(("POST", f"/api/jobs/{{job_id}}/{verb}") for verb in ("pause", "resume", "run")),
    ("GET", "/api/jobs/{job_id}/runs"),
    ("GET", "/"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/runs"),
    ("GET", "/v1/runs/{run_id}"),
    ("GET", "/v1/runs/{run_id}/events"),
    ("POST", "/v1/runs/{run_id}/stop"),
    ("POST", "/v1/runs/{run_id}/steer"),
    ("POST", "/v1/runs/{run_id}/approval"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/responses/input_tokens"),
    ("GET", "/v1/responses/{response_id}"),
    ("DELETE", "/v1/responses/{response_id}"),
    ("POST", "/v1/responses/{response_id}/cancel"),
    ("GET", "/v1/responses/{response_id}/input_items"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations/{conversation_id}"),
    ("POST", "/v1/conversations/{conversation_id}"),
    ("DELETE", "/v1/conversations/{conversation_id}"),
    ("GET", "/v1/conversations/{conversation_id}/items"),
    ("POST", "/v1/conversations/{conversation_id}/items"),
    ("GET", "/v1/conversations/{conversation_id}/items/{item_id}"),
    ("DELETE", "/v1/conversations/{conversation_id}/items/{item_id}"),
    ("POST", "/v1/context/preview"),
    ("GET", "/v1/receipts/{receipt_id}"),
    ("GET", "/v1/memory"),
    ("POST", "/v1/memory"),
    ("GET", "/v1/memory/search"),
    ("POST", "/v1/memory/search"),
    ("GET", "/v1/memory/timeline"),
    ("GET", "/v1/memory/reversals"),
    ("GET", "/v1/memory/why"),
    ("GET", "/v1/memory/export"),
    ("POST", "/v1/memory/import"),
    ("POST", "/v1/memory/delete"),
    ("GET", "/v1/memory/{memory_id}"),
    ("PATCH", "/v1/memory/{memory_id}"),
    ("DELETE", "/v1/memory/{memory_id}"),
    ("POST", "/v1/memory/{memory_id}/pin"),
    ("POST", "/v1/memory/{memory_id}/unpin"),
    ("POST", "/v1/memory/{memory_id}/reopen"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model_id}"),
    ("GET", "/v1/capabilities"),
    ("GET", "/health/detailed"),
    ("GET", "/metrics"),
    ("GET", "/api/sessions"),
    ("POST", "/api/sessions"),
    ("GET", "/api/sessions/{session_id}"),
    ("PATCH", "/api/sessions/{session_id}"),
    ("DELETE", "/api/sessions/{session_id}"),
    ("GET", "/api/sessions/{session_id}/messages"),
    ("POST", "/api/sessions/{session_id}/fork"),
    ("POST", "/api/sessions/{session_id}/chat"),
    ("POST", "/api/sessions/{session_id}/chat/stream"),
}
SECOND_NAMES = {("GET", "/v1/health")}  # the same as /health, which /v1/capabilities names

# Codes that are put together from a field's name, and what can come of it.
BUILT_CODES = {"invalid_{field}": {"invalid_system_prompt", "invalid_system_message", "invalid_instructions"}}

QUICKSTART = "python3 -m venv .venv && .venv/bin/pip install --quiet . && .venv/bin/mnemon serve"
TESTS = "python3 -m venv .venv && .venv/bin/pip install --quiet -e '.[test]' && .venv/bin/python -m pytest -n auto --dist loadfile"


# -- reading pages ----------------------------------------------------------------------------------------------------------


def page(name: str) -> str:
    """The text of a reference page."""
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The rows of all tables of a page, headings left out."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not re.fullmatch(r"[|\s:-]+", line)]


def ticked(text: str) -> set[str]:
    """Everything that stands between backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next of the same kind."""
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^{heading.split(maxsplit=1)[0]} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def first_block(text: str) -> str:
    """The first fenced block."""
    found = re.search(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found
    return found[1].strip()


# -- reading code -----------------------------------------------------------------------------------------------------------


def trees(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Every module of ours, parsed; only those below some folders, if any are named."""
    for path in sorted(SOURCE.rglob("*.py")):
        if not folders or path.relative_to(SOURCE).parts[0] in folders:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def texts(node: ast.expr) -> Iterator[str]:
    """The strings that an expression may become."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield ast.unparse(node)[2:-1]
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from texts(value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        yield from texts(node.func.value)
        for value in node.args[1:]:
            yield from texts(value)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from texts(value)


def codes_of(node: ast.AST) -> Iterator[str]:
    """The error codes that a node of the syntax tree gives: `code=…`, `code = …`, `{"code": …}`, `refusal = (status, code, …)`."""
    if isinstance(node, ast.keyword) and node.arg == "code":
        yield from texts(node.value)
    elif isinstance(node, ast.Assign):
        names = {t.attr if isinstance(t, ast.Attribute) else getattr(t, "id", "") for t in node.targets}
        if names & {"code", "CODES"}:
            yield from texts(node.value)
        elif "refusal" in names and isinstance(node.value, ast.Tuple):
            yield from texts(node.value.elts[1])
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "code":
                yield from texts(value)


def error_codes() -> set[str]:
    """Every error code in the source."""
    found = set(errors.BY_CODE)
    for _, tree in trees():
        for node in ast.walk(tree):
            found.update(codes_of(node))
    for pattern, codes in BUILT_CODES.items():
        assert pattern in found, f"no code is built as {pattern} any more"
        found = (found - {pattern}) | codes
    return found


def existing_routes() -> set[tuple[str, str]]:
    """Method and path of every route; HEAD comes with GET."""
    return {(method, route.path) for route in routes() for method in route.methods or () if method != "HEAD"}


def commands(group: click.Command, name: str = "mnemon") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its whole name."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for part in group.list_commands(context):
            command = group.get_command(context, part)
            assert command is not None, part
            yield from commands(command, f"{name} {part}")
    else:
        yield name, group


def settings() -> list[str]:
    """The names of all settings."""
    return list(config.READERS)


# -- the surface --------------------------------------------------------------------------------------------------------------


def test_exported_names() -> None:
    """The package offers three names and no more."""
    assert mnemon.__all__ == ["Settings", "__version__", "create_app"]
    assert mnemon.create_app is app.create_app
    assert mnemon.Settings is config.Settings
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", mnemon.__version__)


def test_readme_blocks() -> None:
    """The README's first blocks under Quickstart and Tests are the two commands that people and `.ci/run` use."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert first_block(section(readme, "## Quickstart")) == QUICKSTART
    assert first_block(section(readme, "## Tests")) == TESTS


def test_readme_tree() -> None:
    """The README's tree names every folder and module at the top of the package."""
    tree = section((ROOT / "README.md").read_text(encoding="utf-8"), "## The source")
    for path in SOURCE.iterdir():
        shown = f"{path.name}/" if path.is_dir() else path.name
        if not path.name.startswith("_") and path.name != "py.typed":
            assert re.search(rf"^  {re.escape(shown)} ", tree, re.MULTILINE), shown


def test_agents_is_short() -> None:
    """AGENTS.md can be read in one go."""
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 110


# -- settings -----------------------------------------------------------------------------------------------------------------


def shown_default(name: str) -> str:
    """A default as the table writes it."""
    value = {f.name: f.default for f in fields(config.Settings)}[name]
    if value in (None, (), Path()):
        return "–"
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def test_settings_are_documented() -> None:
    """Every setting stands in the table with its name in the file, its variable, its flag and its default; no other does."""
    table = {row[0].strip("`"): row for row in rows(section(page("settings"), "## Every setting"))[1:]}
    assert set(table) == set(settings()) == {f.name for f in fields(config.Settings)}
    for name, row in table.items():
        expected = [f"`{name}`", f"`{config.PREFIX}{name.upper()}`", f"`--{name.replace('_', '-')}`", shown_default(name)]
        assert row[:4] == expected
        assert row[4]


def test_settings_are_flags() -> None:
    """`mnemon serve` takes every setting as a flag."""
    serve = dict(commands(cli.main))["mnemon serve"]
    flags = {option for each in serve.params if isinstance(each, click.Option) for option in each.opts}
    assert {f"--{name.replace('_', '-')}" for name in settings()} <= flags


def test_fallbacks_are_documented() -> None:
    """The names that Hermes and the OpenAI SDK use stand in a table of their own, and so does the way to name the file."""
    table = {row[0].strip("`"): ticked(row[1]) for row in rows(section(page("settings"), "## Fallbacks"))[1:]}
    assert {name: {other} for name, other in config.FALLBACKS.items()} == {n: v for n, v in table.items() if n != "upstream_key"}
    assert "OPENAI_API_KEY" in table["upstream_key"]
    assert config.CONFIG in ticked(page("settings"))


# -- routes and headers ---------------------------------------------------------------------------------------------------------


def test_routes_are_documented() -> None:
    """Every route stands in the table of the HTTP page and has a place in its text; no other does."""
    text = page("http")
    table = text[: text.index("\n## ")]
    listed = {tuple(cell.split(" ", 1)) for cell in ticked(table) if re.fullmatch(r"[A-Z]+ /\S*", cell)}
    assert listed == existing_routes()
    for method, path in existing_routes() - {("GET", "/metrics")}:
        assert f"`{method} {path}`" in text[len(table) :], (method, path)


def test_routes_are_discoverable() -> None:
    """`/v1/capabilities` names every route, once."""
    assert set(discovery.ENDPOINTS.values()) | SECOND_NAMES == existing_routes()
    assert len(set(discovery.ENDPOINTS.values())) == len(discovery.ENDPOINTS)


def test_authentication_of_each_route() -> None:
    """Who may call a route was decided for each: only the two health checks are open."""
    assert existing_routes() == OPEN | WITH_KEY
    assert {path for _, path in OPEN} == gateway.OPEN_PATHS


def test_every_route_is_plain() -> None:
    """Routes are plain ones: nothing is mounted that the checks of this file would not see."""
    assert all(type(route) is Route for route in routes())


def used_headers() -> set[str]:
    """Every header that the code reads or sends, in small letters."""
    found = {name.lower() for name in [*identity.HEADERS.values(), *identity.OPEN_WEBUI.values(), identity.RECEIPT, identity.REPLAYED]}
    for _, tree in trees("edge", "app.py"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                if re.fullmatch(r"(?i)x-(hermes|mnemon|openwebui|request|accel)-[a-z-]+", text):
                    found.add(text.lower())
    return found | {"authorization", "idempotency-key", "last-event-id", "retry-after", "www-authenticate", "connection"}


def test_headers_are_documented() -> None:
    """Every header of ours, and every other that is read or sent, stands on the page of headers; none that does not exist."""
    text = page("headers")
    shown = {name.lower() for name in ticked(text)}
    assert used_headers() <= shown
    own = {name for name in shown if re.fullmatch(r"x-[a-z-]+[a-z]", name)}
    assert own <= used_headers()


def test_cors_allows_what_is_documented() -> None:
    """Browsers may send every header and read every response header of ours."""
    made = app.middleware(config.Settings(cors_origins=("https://a.example",)), keyring=Any, metrics=Any)  # type: ignore[arg-type]
    options: dict[str, Any] = made[0].kwargs
    sent = {row[0].strip("`") for row in rows(section(page("headers"), "## Responses"))[1:]}
    assert options["allow_headers"] == ["*"]
    ours = {name for name in sent if name.startswith(("X-Hermes-", "X-Mnemon-", "Idempotency-", "Retry-", "X-Request-"))}
    assert ours <= set(options["expose_headers"])


# -- errors, events, metrics, commands --------------------------------------------------------------------------------------------


def documented_codes() -> dict[str, str]:
    """Code and status of every row of the tables of errors."""
    return {row[0].strip("`"): row[1] for row in rows(page("errors")) if row[0].startswith("`")}


def test_error_codes_are_documented() -> None:
    """Every error code that the code can give stands on the page of errors, and none that it cannot."""
    command_line = ticked(section(page("errors"), "## On the command line only"))
    documented = set(documented_codes()) | {code for code in command_line if code != "mnemon"}
    assert documented == error_codes()


def test_error_statuses_are_documented() -> None:
    """The status beside a code is the one that the table from errors to HTTP gives it."""
    codes = documented_codes()
    for kind, (status, _) in errors.STATUS.items():
        shown = codes.get(kind.code)
        if shown is not None and kind.code not in ("store_error", "upstream_rejected"):
            assert shown == str(status), kind.code
    assert {code: codes[code] for code in errors.BY_CODE} == {code: str(status) for code, status in errors.BY_CODE.items()}
    assert codes["upstream_rejected"].startswith(", ".join(map(str, errors.PASSED_ON)))


def test_events_are_documented() -> None:
    """Every named event stands in the table of events, and no other."""
    found: dict[str, set[str]] = {"## Session chat": set(), "## Runs": set(wire.ENDS)}
    for path, tree in trees("edge"):
        if path.parent.name == "responses":
            continue  # see below
        names = found["## Runs" if path.parent.name == "runs" else "## Session chat"]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "_event" and node.args:
                names.update(texts(node.args[0]))
    for heading, names in found.items():
        assert {row[0].strip("`") for row in rows(section(page("events"), heading))[1:]} == names


def test_events_of_responses_are_documented() -> None:
    """Every event that a response can have stands in the table of events, and no other."""
    found: set[str] = set()
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    deltas: list[Json] = [{"reasoning_content": "Hm."}, {"content": "Words."}, {"refusal": "No."}, {"tool_calls": [call]}]
    for reason in ("stop", "length", None):
        shown = ResponseWire("resp_", {}, system=[], clock=lambda: 0.0)
        frames = shown.begin(Effective())
        for delta in deltas:
            frames += shown.chunk({"choices": [{"delta": delta}]})
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        outcome = Outcome(reply={"content": "Words."}, finish_reason=str(reason), usage=usage, effective=Effective(), whole={})
        frames += shown.finish(outcome) if reason else shown.failure(ModelError("no"))
        found |= {frame.split(b"\n")[0].decode().removeprefix("event: ") for frame in frames}
    assert {row[0].strip("`") for row in rows(section(page("events"), "## Responses"))[1:]} == found


def test_metrics_are_documented() -> None:
    """Every metric stands in the table with its kind, and no other."""
    table = {row[0].strip("`"): row[1] for row in rows(page("metrics"))[1:]}
    assert table == {name: "gauge" if name in metrics.GAUGES else "counter" for name in metrics.HELP}


@pytest.mark.parametrize(("name", "command"), list(commands(cli.main)), ids=lambda value: value if isinstance(value, str) else "")
def test_lists_of_commands_are_not_cut(name: str, command: click.Command) -> None:
    """What a command does can be read whole in the list that `--help` of the command above it shows, 80 columns wide."""
    assert not command.get_short_help_str(limit=64).endswith("..."), name


@pytest.mark.parametrize(("name", "command"), list(commands(cli.main)), ids=lambda value: value if isinstance(value, str) else "")
def test_commands_are_documented(name: str, command: click.Command) -> None:
    """Every command has a section of its own that names each of its options."""
    text = section(page("commands"), f"## {name}")
    options = {option for each in command.params if isinstance(each, click.Option) for option in each.opts}
    if "every option of `mnemon serve`" in text:
        text += section(page("commands"), "## mnemon serve")
    assert options <= ticked(text)
    assert {word for word in ticked(text) if re.fullmatch(r"--[a-z-]+", word)} <= options


def test_no_command_is_invented() -> None:
    """The page of commands has a section for each command that exists, and for no other."""
    headings = set(re.findall(r"^## (mnemon .+)$", page("commands"), re.MULTILINE))
    assert headings == {name for name, _ in commands(cli.main)}


# -- pages ------------------------------------------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The places in a page that a link may name, as GitHub makes them."""
    bare = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", bare, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(path: Path) -> None:
    """Every relative link of a page leads to a file that exists, and to a heading that exists."""
    bare = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", bare):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text(encoding="utf-8")), target


def test_every_page_is_reachable() -> None:
    """From the README one gets to every page of the docs."""
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        links = re.findall(r"\]\(([^)\s#]+)", path.read_text(encoding="utf-8"))
        waiting += [(path.parent / link).resolve() for link in links if not re.match(r"[a-z]+:", link)]
    assert set(PAGES) - seen <= {ROOT / "CHANGELOG.md"}


def test_decisions_are_numbered_and_dated() -> None:
    """Decisions are numbered without a gap, each with its date and its five parts, and listed."""
    folder = ROOT / "docs" / "adr"
    pages = sorted(folder.glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in pages] == list(range(1, len(pages) + 1))
    listed = (folder / "README.md").read_text(encoding="utf-8")
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert re.match(rf"# {path.name[:4]} .+\n\n\d{{4}}-\d\d-\d\d\n", text), path.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Choice", "Cost", "What would change our mind"]
        assert f"({path.name})" in listed


def test_changelog_has_an_unreleased_section() -> None:
    """There is a place for the line that every change carries."""
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
