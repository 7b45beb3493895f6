"""Settings: where they come from, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mnemon import config
from mnemon.config import READERS, SettingError, Settings, describe, load

SECRET = "hunter2-hunter2-hunter2"

# A good value for each setting, as text and as what it is understood as, and one that cannot be understood.
VALUES: dict[str, tuple[str, Any, str]] = {
    "api_key": (SECRET, SECRET, "  "),
    "host": ("::1", "::1", "  "),
    "port": ("9000", 9000, "65536"),
    "database_url": ("postgresql://u@h/d", "postgresql://u@h/d", "mysql://u@h/d"),
    "data_dir": ("/srv/x", Path("/srv/x"), ""),
    "upstream_url": ("http://h:1/v1/", "http://h:1/v1", "localhost:11434"),
    "upstream_key": (SECRET, SECRET, " "),
    "upstream_model": ("gpt-4o", "gpt-4o", " "),
    "context_budget": ("4096", 4096, "511"),
    "recall_tokens": ("0", 0, "-1"),
    "upstream_timeout": ("1.5", 1.5, "0"),
    "compress_at": ("0.5", 0.5, "nan"),
    "memory_provider": ("None", "none", "postgres"),
    "embeddings": ("off", "off", "openai"),
    "timezone": ("Europe/Berlin", "Europe/Berlin", "Mars/Olympus"),
    "openwebui_headers": ("on", True, "maybe"),
    "webhook_private": ("yes", True, "2"),
    "runs_kept_days": ("7", 7, "0"),
    "cors_origins": ("https://a.example, https://b.example", ("https://a.example", "https://b.example"), ""),
    "model_name": ("my-model", "my-model", " "),
}
WRONG = [(name, wrong) for name, (_, _, wrong) in VALUES.items() if wrong]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment that names an empty data directory, so that no file of the machine is read."""
    return {"MNEMON_DATA_DIR": str(tmp_path)}


def toml(home: dict[str, str], text: str) -> None:
    """A settings file in the data directory."""
    Path(home["MNEMON_DATA_DIR"], "mnemon.toml").write_text(text, encoding="utf-8")


def line(flags: dict[str, Any] | None, environ: dict[str, str]) -> str:
    """The one line that a wrong setting gives."""
    with pytest.raises(SettingError) as caught:
        load(flags, environ)
    message = str(caught.value)
    assert "\n" not in message
    assert message
    return message


def test_every_setting_is_tried_here() -> None:
    """No setting is without a case in this file, a reader, and a default of its own type."""
    assert set(VALUES) == set(READERS) == set(Settings.__dataclass_fields__)


def test_the_defaults(home: dict[str, str]) -> None:
    """Without any setting the server is what the contract says."""
    found = load({}, home)
    assert (found.host, found.port, found.api_key) == ("127.0.0.1", 8642, None)
    assert found.database() == f"sqlite:///{home['MNEMON_DATA_DIR']}/mnemon.db"
    assert (found.upstream_url, found.upstream_key, found.upstream_model, found.upstream_timeout) == (None, None, None, 120)
    assert (found.context_budget, found.recall_tokens, found.compress_at) == (16384, 2048, 0.6)
    assert (found.memory_provider, found.embeddings, found.timezone) == ("builtin", "builtin", "UTC")
    assert (found.openwebui_headers, found.webhook_private, found.cors_origins) == (False, False, ())


@pytest.mark.parametrize("name", sorted(VALUES))
def test_each_setting_by_flag_environment_and_file(name: str, home: dict[str, str], tmp_path: Path) -> None:
    """Every setting can be given in all three ways, and means the same in each."""
    text, value, _ = VALUES[name]
    assert getattr(load({name: text}, home), name) == value
    assert getattr(load({}, home | {f"MNEMON_{name.upper()}": text}), name) == value
    for spelling in (name, f"MNEMON_{name.upper()}"):
        file = tmp_path / "some.toml"
        file.write_text(f'{spelling} = "{text}"\n')
        without = {n: v for n, v in home.items() if n != "MNEMON_DATA_DIR" or name != "data_dir"}
        assert getattr(load({"config": str(file)}, without), name) == value


def test_who_wins(home: dict[str, str]) -> None:
    """Flag before environment before file before the names of others before the default."""
    layers: list[tuple[dict[str, Any], dict[str, str], str]] = [
        ({"port": 1}, {"MNEMON_PORT": "2", "API_SERVER_PORT": "4"}, "port = 3"),
        ({}, {"MNEMON_PORT": "2", "API_SERVER_PORT": "4"}, "port = 3"),
        ({}, {"API_SERVER_PORT": "4"}, "port = 3"),
        ({}, {"API_SERVER_PORT": "4"}, ""),
        ({}, {}, ""),
    ]
    found = []
    for flags, environ, text in layers:
        toml(home, text)
        found.append(load(flags, home | environ).port)
    assert found == [1, 2, 3, 4, 8642]


def test_an_empty_value_is_no_value(home: dict[str, str]) -> None:
    """An environment variable that is set to nothing, and a flag that was not given, change nothing."""
    assert load({"port": None, "host": None}, home | {"MNEMON_PORT": "", "API_SERVER_HOST": ""}).port == 8642


def test_the_names_of_others(home: dict[str, str]) -> None:
    """Hermes' and OpenAI's variables are understood."""
    theirs = {
        "API_SERVER_KEY": SECRET,
        "API_SERVER_HOST": "192.0.2.1",
        "API_SERVER_PORT": "1234",
        "API_SERVER_CORS_ORIGINS": "https://a.example",
        "API_SERVER_MODEL_NAME": "agent",
        "OPENAI_BASE_URL": "http://h/v1",
        "OPENAI_API_KEY": "sk-1",
    }
    found = load({}, home | theirs)
    assert (found.api_key, found.host, found.port) == (SECRET, "192.0.2.1", 1234)
    assert (found.cors_origins, found.model_name) == (("https://a.example",), "agent")
    assert (found.upstream_url, found.upstream_key) == ("http://h/v1", "sk-1")


@pytest.mark.parametrize(
    ("environ", "sent"),
    [
        ({"OPENAI_BASE_URL": "http://h/v1"}, True),
        ({"MNEMON_UPSTREAM_URL": "https://api.openai.com/v1"}, True),
        ({"MNEMON_UPSTREAM_URL": "https://API.OpenAI.com/v1/"}, True),
        ({"MNEMON_UPSTREAM_URL": "http://h/v1", "OPENAI_BASE_URL": "http://h/v1"}, True),
        ({"MNEMON_UPSTREAM_URL": "http://h/v1"}, False),
        ({"MNEMON_UPSTREAM_URL": "http://other/v1", "OPENAI_BASE_URL": "http://h/v1"}, False),
        ({"MNEMON_UPSTREAM_URL": "https://api.openai.com.evil.example/v1"}, False),
        ({"MNEMON_UPSTREAM_URL": "https://api.openai.com@evil.example/v1"}, False),
        ({"MNEMON_UPSTREAM_URL": "https://evil.example/?api.openai.com"}, False),
        ({}, False),
    ],
)
def test_openai_s_key_goes_to_openai(environ: dict[str, str], *, sent: bool, home: dict[str, str]) -> None:
    """OPENAI_API_KEY is sent to the address it came with or to OpenAI, and to nobody else."""
    assert load({}, home | environ | {"OPENAI_API_KEY": SECRET}).upstream_key == (SECRET if sent else None)


def test_our_own_key_for_the_upstream_wins(home: dict[str, str]) -> None:
    """A key that was set for the upstream is not replaced by OpenAI's."""
    environ = {"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": "sk-theirs", "MNEMON_UPSTREAM_KEY": "ours"}
    assert load({}, home | environ).upstream_key == "ours"


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_a_wrong_value_names_its_setting(name: str, wrong: str, home: dict[str, str]) -> None:
    """A value that cannot be understood gives one line that names the place it stands in, as the person wrote it."""
    assert line({}, home | {f"MNEMON_{name.upper()}": wrong}).startswith(f"MNEMON_{name.upper()} must be ")
    assert line({name: wrong}, home).startswith(f"--{name.replace('_', '-')} must be ")
    toml(home, f'{name} = "{wrong}"\n')
    if name != "data_dir":
        assert line({}, home).startswith(f"{name} in the settings file must be ")


@pytest.mark.parametrize(
    ("name", "wrong", "wanted"),
    [
        ("port", "http", "a whole number from 0 to 65535, not 'http'"),
        ("port", "80.5", "a whole number from 0 to 65535, not '80.5'"),
        ("port", "-1", "a whole number from 0 to 65535, not '-1'"),
        ("context_budget", "1e6", "a whole number from 512 to 100000000, not '1e6'"),
        ("compress_at", "1", "a number from 0.1 to 0.9, not '1'"),
        ("upstream_timeout", "inf", "a number from 0.1 to 86400, not 'inf'"),
        ("memory_provider", "redis", "builtin or none, not 'redis'"),
        ("openwebui_headers", "ja", "on or off, not 'ja'"),
        ("upstream_url", "ftp://h", "an http:// or https:// address, not 'ftp://h'"),
        ("upstream_url", "http://", "an http:// or https:// address, not 'http://'"),
        ("upstream_url", "http://[::1", "an http:// or https:// address, not 'http://[::1'"),
        ("timezone", "Berlin", "an IANA time zone such as Europe/Berlin, not 'Berlin'"),
        ("timezone", "../etc/passwd", "an IANA time zone such as Europe/Berlin, not '../etc/passwd'"),
        ("database_url", "sqlite:relative.db", "sqlite:///FILE or postgresql://…, not 'sqlite:relative.db'"),
        ("database_url", "sqlite:///", "sqlite:///FILE or postgresql://…, not 'sqlite:///'"),
    ],
)
def test_a_wrong_value_says_what_was_wanted(name: str, wrong: str, wanted: str, home: dict[str, str]) -> None:
    """The line says what would have been right, and repeats what was given."""
    for more in ({}, {"OPENAI_API_KEY": "sk-1"}):
        assert line({}, home | more | {f"MNEMON_{name.upper()}": wrong}) == f"MNEMON_{name.upper()} must be {wanted}"


def test_a_misspelt_name_is_told(home: dict[str, str]) -> None:
    """An unknown variable or key in the file stops the start, with the name that was probably meant."""
    assert line({}, home | {"MNEMON_UPSTRAEM_URL": "x"}) == "MNEMON_UPSTRAEM_URL is not a setting; did you mean MNEMON_UPSTREAM_URL?"
    assert line({}, home | {"MNEMON_XYZZY": "x"}).startswith("MNEMON_XYZZY is not a setting")
    toml(home, "prot = 1\n")
    assert line({}, home).startswith("prot is not a setting; did you mean port?")


def test_files_that_cannot_be_read(home: dict[str, str], tmp_path: Path) -> None:
    """A missing, broken or undecodable settings file gives one line with its name."""
    missing = str(tmp_path / "missing.toml")
    assert missing in line({"config": missing}, home)
    assert missing in line({}, home | {"MNEMON_CONFIG": missing})
    assert str(tmp_path) in line({"config": str(tmp_path)}, home)
    toml(home, "port = = 1")
    assert "mnemon.toml is not valid TOML" in line({}, home)
    Path(home["MNEMON_DATA_DIR"], "mnemon.toml").write_bytes(b'host = "\xff\xfe"\n')
    assert "mnemon.toml is not valid TOML" in line({}, home)
    toml(home, "[server]\nport = 1\n")
    assert line({}, home).startswith("server is not a setting")


def test_a_file_in_any_script(home: dict[str, str]) -> None:
    """TOML's own types are understood, lists and text in any script too."""
    toml(home, 'model_name = "记忆 ☕"\ncors_origins = ["https://a", "https://b"]\nopenwebui_headers = true\ncompress_at = 0.5\n')
    found = load({}, home)
    assert (found.model_name, found.cors_origins, found.openwebui_headers, found.compress_at) == (
        "记忆 ☕",
        ("https://a", "https://b"),
        True,
        0.5,
    )


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("127.9.9.9", True),
        ("0.0.0.0", False),  # noqa: S104 - it is refused
        ("example.org", False),
        ("::", False),
    ],
)
def test_a_short_key_stays_at_home(host: str, *, allowed: bool, home: dict[str, str]) -> None:
    """A key of fewer than 16 characters is taken only while nobody else can reach the server; the line says both ways out, not the key."""
    environ = home | {"MNEMON_HOST": host, "MNEMON_API_KEY": "hermes"}
    if allowed:
        assert load({}, environ).api_key == "hermes"
    else:
        message = line({}, environ)
        assert "MNEMON_API_KEY" in message
        assert "MNEMON_HOST" in message
        assert "hermes" not in message
    assert load({}, environ | {"MNEMON_API_KEY": "x" * 16}).host == host


def test_recall_fits_into_the_budget(home: dict[str, str]) -> None:
    """More recall than budget is refused, with both names and numbers."""
    message = line({}, home | {"MNEMON_CONTEXT_BUDGET": "1024", "MNEMON_RECALL_TOKENS": "1025"})
    for part in ("MNEMON_RECALL_TOKENS (1025)", "MNEMON_CONTEXT_BUDGET (1024)"):
        assert part in message
    assert load({}, home | {"MNEMON_CONTEXT_BUDGET": "1024", "MNEMON_RECALL_TOKENS": "1024"}).recall_tokens == 1024


def test_secrets_are_never_shown(home: dict[str, str]) -> None:
    """No key and no password appears in what is shown of the settings, nor in the line about a wrong one."""
    environ = {
        "MNEMON_API_KEY": SECRET,
        "MNEMON_UPSTREAM_KEY": SECRET,
        "MNEMON_DATABASE_URL": f"postgresql://user:{SECRET}@host:5432/db?sslmode=require",
        "MNEMON_UPSTREAM_URL": f"https://user:{SECRET}@host/v1",
    }
    shown = dict(describe(load({}, home | environ)))
    assert SECRET not in str(shown)
    assert shown["MNEMON_API_KEY"] == shown["MNEMON_UPSTREAM_KEY"] == "(set)"
    assert shown["MNEMON_DATABASE_URL"].startswith("postgresql://user:")
    assert shown["MNEMON_DATABASE_URL"].endswith("@host:5432/db?sslmode=require")
    assert len(shown) == len(READERS)
    for name in ("DATABASE_URL", "UPSTREAM_URL"):
        assert SECRET not in line({}, home | {f"MNEMON_{name}": f"mysql://user:{SECRET}@host/db"})
    for name in ("API_KEY", "UPSTREAM_KEY"):
        assert "must be a text" in line({}, home | {f"MNEMON_{name}": "  "})


def test_home_is_expanded(home: dict[str, str]) -> None:
    """A data directory may be given relative to one's home or to here."""
    assert load({"data_dir": "~/x"}, home).data_dir == Path.home() / "x"
    assert load({"data_dir": "y"}, home).data_dir == Path.cwd() / "y"


def test_what_is_not_set_is_shown_as_such(home: dict[str, str]) -> None:
    """The overview of the settings shows what is unset, too."""
    shown = dict(describe(load({}, home)))
    assert (shown["MNEMON_API_KEY"], shown["MNEMON_CORS_ORIGINS"], shown["MNEMON_PORT"]) == ("–", "–", "8642")
    assert config.PREFIX == "MNEMON_"
