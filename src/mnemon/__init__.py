"""Mnemon: a server that gives any OpenAI-compatible model a durable, bounded, inspectable memory."""

from mnemon.app import create_app
from mnemon.config import Settings
from mnemon.core.version import __version__

__all__ = ["Settings", "__version__", "create_app"]
