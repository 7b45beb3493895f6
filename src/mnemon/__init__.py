"""Mnemon: a server that gives any OpenAI-compatible model a durable, bounded, inspectable memory."""

from importlib.metadata import version

from mnemon.app import create_app
from mnemon.config import Settings

__all__ = ["Settings", "__version__", "create_app"]
__version__ = version("mnemon-server")
