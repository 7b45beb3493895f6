"""Everything that can go wrong, without a word of HTTP.

    MnemonError
    ├── Invalid            the request is wrong; `param` names the field
    ├── Denied             no valid credential
    ├── NotFound           no such thing in this tenant
    ├── Conflict           the request contradicts what is stored or running
    ├── LimitReached       too much at once; `retry_after` says when to come back
    ├── StoreError         the database failed
    │   ├── Unavailable    ... because it could not be reached
    │   └── LeaseLost      ... because another process took the session over
    ├── ModelError         the model failed
    │   ├── ModelDenied    ... it refused our credential
    │   ├── ModelBusy      ... it is rate limited; `retry_after` is its own word
    │   ├── ModelRejected  ... it refused this very request; a retry is useless
    │   ├── ModelTimeout   ... it was silent for too long
    │   └── BadReply       ... it answered with something that is not an answer
    ├── Cancelled          somebody asked for the turn to be stopped
    └── Stopped            the server is shutting down

Each carries a stable `code`; `edge/errors.py` alone knows which HTTP status belongs to it.
"""

from __future__ import annotations


class MnemonError(Exception):
    """Base of all errors of this package."""

    code = "internal_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.param = param
        self.retry_after = retry_after


class Invalid(MnemonError):
    """The request is wrong; `param` names the field."""

    code = "invalid_request"


class Denied(MnemonError):
    """No valid credential."""

    code = "invalid_api_key"


class NotFound(MnemonError):
    """No such thing in this tenant."""

    code = "not_found"


class Conflict(MnemonError):
    """The request contradicts what is stored or running."""

    code = "conflict"


class LimitReached(MnemonError):
    """Too much at once."""

    code = "rate_limit_exceeded"


class StoreError(MnemonError):
    """The database failed."""

    code = "store_error"


class Unavailable(StoreError):
    """The database could not be reached."""

    code = "store_unavailable"


class LeaseLost(StoreError):
    """Another process took the session over while this turn was running."""

    code = "lease_lost"


class ModelError(MnemonError):
    """The model failed."""

    code = "upstream_error"


class ModelDenied(ModelError):
    """The model refused our credential."""

    code = "upstream_auth"


class ModelBusy(ModelError):
    """The model is rate limited."""

    code = "upstream_rate_limited"


class ModelRejected(ModelError):
    """The model refused this very request; sending it again is useless."""

    code = "upstream_rejected"


class ModelTimeout(ModelError):
    """The model was silent for too long."""

    code = "upstream_timeout"


class BadReply(ModelError):
    """The model answered with something that is not an answer."""

    code = "upstream_bad_reply"


class Cancelled(MnemonError):
    """Somebody asked for the turn to be stopped."""

    code = "cancelled"


class Stopped(MnemonError):
    """The server is shutting down."""

    code = "server_stopping"
