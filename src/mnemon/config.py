"""Settings: one frozen record, read once.

A value is looked for in this order: flag, environment, TOML file, the environment names that Hermes and the OpenAI SDK use, default.
Anything that cannot be understood stops the start with a sentence that names the setting; so does a misspelt name.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

T = TypeVar("T")

PREFIX = "MNEMON_"
CONFIG = "MNEMON_CONFIG"
SHORTEST_PUBLIC_KEY = 16
SMALLEST_BUDGET = 512

FALLBACKS = {
    "api_key": "API_SERVER_KEY",
    "host": "API_SERVER_HOST",
    "port": "API_SERVER_PORT",
    "cors_origins": "API_SERVER_CORS_ORIGINS",
    "model_name": "API_SERVER_MODEL_NAME",
    "upstream_url": "OPENAI_BASE_URL",
}


class SettingError(Exception):
    """A setting that cannot be used; the message is for the person who set it."""


def user_data_dir() -> Path:
    """Where the platform keeps the data of a user's programs."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "mnemon"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "mnemon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. The documentation of each is in docs/reference/settings.md."""

    api_key: str | None = None
    host: str = "127.0.0.1"
    port: int = 8642
    database_url: str | None = None
    data_dir: Path = Path()
    upstream_url: str | None = None
    upstream_key: str | None = None
    upstream_model: str | None = None
    context_budget: int = 16384
    recall_tokens: int = 2048
    upstream_timeout: float = 120.0
    compress_at: float = 0.6
    memory_provider: str = "builtin"
    embeddings: str = "builtin"
    timezone: str = "UTC"
    openwebui_headers: bool = False
    webhook_private: bool = False
    runs_kept_days: int = 30
    cors_origins: tuple[str, ...] = ()
    model_name: str | None = None

    def database(self) -> str:
        """The database's address; a file in the data directory unless set."""
        return self.database_url or f"sqlite:///{self.data_dir / 'mnemon.db'}"

    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


# -- readers: text to value; each raises ValueError with what it wanted ---------------------------------------------------


def a_text(text: str) -> str:
    if not text.strip():
        raise ValueError("a text")
    return text.strip()


def number(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return described(read, f"a number from {low:g} to {high:g}")


def whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return described(read, f"a whole number from {low} to {high}")


def one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError
        return text.lower()

    return described(read, " or ".join(allowed))


def switch(text: str) -> bool:
    if text.lower() in ("on", "true", "1", "yes"):
        return True
    if text.lower() in ("off", "false", "0", "no"):
        return False
    raise ValueError("on or off")


def http_url(text: str) -> str:
    if not re.match(r"https?://[^/]", text, re.IGNORECASE) or host_of(text) is None:
        raise ValueError("an http:// or https:// address")
    return text.rstrip("/")


def host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # brackets that do not close
        return None


def database(text: str) -> str:
    if not text.startswith(("sqlite:///", "postgresql://", "postgres://")) or text == "sqlite:///":
        raise ValueError("sqlite:///FILE or postgresql://…")
    return text


def origins(text: str) -> tuple[str, ...]:
    found = tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())
    for origin in found:
        parts = urlsplit(origin)
        if origin != "*" and (parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}" or ";" in origin):
            raise ValueError("a comma list of origins such as https://app.example")
    return found


def zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError("an IANA time zone such as Europe/Berlin") from None
    return text


def folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def described(read: Callable[[str], T], wanted: str) -> Callable[[str], T]:
    """The same reader, which says what it wanted when it fails."""

    def told(text: str) -> T:
        try:
            return read(text)
        except ValueError:
            raise ValueError(wanted) from None

    return told


READERS: dict[str, Callable[[str], Any]] = {
    "api_key": a_text,
    "host": a_text,
    "port": whole(0, 65535),
    "database_url": database,
    "data_dir": folder,
    "upstream_url": http_url,
    "upstream_key": a_text,
    "upstream_model": a_text,
    "context_budget": whole(SMALLEST_BUDGET, 100_000_000),
    "recall_tokens": whole(0, 100_000_000),
    "upstream_timeout": number(0.1, 86400),
    "compress_at": number(0.1, 0.9),
    "memory_provider": one_of("builtin", "none"),
    "embeddings": one_of("builtin", "off"),
    "timezone": zone,
    "openwebui_headers": switch,
    "webhook_private": switch,
    "runs_kept_days": whole(1, 36500),
    "cors_origins": origins,
    "model_name": a_text,
}


def load(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises `SettingError` with one clear line."""
    environ = os.environ if environ is None else environ
    given = {name: str(value) for name, value in (flags or {}).items() if value is not None}
    config = given.pop("config", None)
    check_names(environ)
    place = {name: f"--{name.replace('_', '-')}" for name in given}
    for name in READERS:
        text = environ.get(PREFIX + name.upper(), "")
        if name not in given and text:
            given[name], place[name] = text, PREFIX + name.upper()
    home = folder(given["data_dir"]) if "data_dir" in given else user_data_dir()
    for name, text in from_file(config or environ.get(CONFIG), home).items():
        if name not in given:
            given[name], place[name] = text, f"{name} in the settings file"
    for name, other in FALLBACKS.items():
        if name not in given and environ.get(other):
            given[name], place[name] = environ[other], other
    if "upstream_key" not in given and environ.get("OPENAI_API_KEY") and meant_for_openai(given, environ):
        given["upstream_key"], place["upstream_key"] = environ["OPENAI_API_KEY"], "OPENAI_API_KEY"
    given.setdefault("data_dir", str(home))
    return checked(Settings(**{name: understood(name, text, place.get(name, name)) for name, text in given.items()}))


def meant_for_openai(given: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """A key for OpenAI is sent nowhere but to the address it came with, or to OpenAI."""
    url = given.get("upstream_url", "")
    return url == environ.get("OPENAI_BASE_URL") or host_of(url) == "api.openai.com"


def understood(name: str, text: str, place: str) -> Any:
    try:
        return READERS[name](text)
    except ValueError as error:
        shown = "" if name.endswith("_key") else f", not {without_password(text)!r}"
        message = f"{place} must be {error}{shown}"
        raise SettingError(message) from None


def check_names(environ: Mapping[str, str]) -> None:
    known = [PREFIX + name.upper() for name in READERS] + [CONFIG]
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            raise SettingError(misspelt(name, known))


def misspelt(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"{name} is not a setting" + (f"; did you mean {near[0]}?" if near else "")


def from_file(path: str | None, home: Path) -> dict[str, str]:
    """The settings of a TOML file: the one named, or `mnemon.toml` in the data directory if there is one."""
    file = Path(path).expanduser() if path else home / "mnemon.toml"
    if not path and not file.exists():
        return {}
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        message = f"cannot read the settings file {file}: {error.strerror}"
        raise SettingError(message) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"the settings file {file} is not valid TOML: {error}"
        raise SettingError(message) from None
    found = {}
    for key, value in values.items():
        name = key.removeprefix(PREFIX).lower()
        if name not in READERS:
            message = f"{misspelt(key, list(READERS))} (in {file})"
            raise SettingError(message)
        found[name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return found


def checked(settings: Settings) -> Settings:
    """What single settings cannot know. Raises `SettingError`."""
    if settings.api_key is not None and len(settings.api_key) < SHORTEST_PUBLIC_KEY and not settings.loopback():
        message = (
            f"MNEMON_API_KEY is shorter than {SHORTEST_PUBLIC_KEY} characters, which is allowed only while the server listens on loopback:"
            f" take a longer key, or leave MNEMON_HOST at 127.0.0.1 (it is {settings.host})"
        )
        raise SettingError(message)
    if settings.recall_tokens > settings.context_budget:
        message = (
            f"MNEMON_RECALL_TOKENS ({settings.recall_tokens}) must not be larger than MNEMON_CONTEXT_BUDGET ({settings.context_budget})"
        )
        raise SettingError(message)
    return settings


def doubts(settings: Settings) -> list[str]:
    """What is set and can be used, but hardly meant."""
    lonely = [name for name in ("upstream_model", "upstream_key") if getattr(settings, name) is not None and settings.upstream_url is None]
    return [f"{PREFIX}{name.upper()} has no effect without MNEMON_UPSTREAM_URL: the built-in model answers" for name in lonely]


def describe(settings: Settings) -> list[tuple[str, str]]:
    """(name, value) of every setting, secrets hidden."""
    return [(PREFIX + f.name.upper(), hidden(f.name, getattr(settings, f.name))) for f in fields(settings)]


def hidden(name: str, value: Any) -> str:
    if value is None or value == ():
        return "–"
    return "(set)" if name.endswith("_key") else without_password(str(value))


def without_password(text: str) -> str:
    """An address as it may be shown."""
    return re.sub(r"(?<=password=)[^&]*", "…", re.sub(r"(://[^/@:]*:).*@", r"\1…@", text))
