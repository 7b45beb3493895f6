"""HTTP on the socket: uvicorn's protocol, with limits on the head of a request and JSON for what is not HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_URL = 32 * 1024
LARGEST_HEAD = 64 * 1024


class HeadTooLarge(Exception):
    """Ends the parser's work on a request; the parser turns it into an error of its own."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    refusal = (400, "invalid_http", "this is not a valid HTTP request")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LONGEST_URL:
            self.refusal = (414, "uri_too_long", f"the URL is longer than {LONGEST_URL} bytes")
            raise HeadTooLarge

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head += len(name) + len(value)
        if self.head > LARGEST_HEAD:
            self.refusal = (431, "headers_too_large", f"the headers are larger than {LARGEST_HEAD} bytes")
            raise HeadTooLarge
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        status, code, message = self.refusal
        error: dict[str, Any] = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
        body = msgspec.json.encode({"error": error})
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
