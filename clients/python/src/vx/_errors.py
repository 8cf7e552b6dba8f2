"""The errors of calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence, Tuple

from google.rpc.error_details_pb2 import BadRequest

if TYPE_CHECKING:
    from google.protobuf.message import Message


class VxError(Exception):
    """Every error of a call."""

    #: The reason of the server, one of its table of errors. None if the error is not of the server.
    reason: Optional[str] = None

    def __init__(
        self,
        message: str,
        *,
        code: str,
        reason: Optional[str] = None,
        details: Sequence[Message] = (),
        metadata: Optional[Mapping[str, str]] = None,
        headers: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The code of gRPC, such as "failed_precondition".
        self.code = code
        if reason is not None:
            self.reason = reason
        #: The google.rpc details.
        self.details = tuple(details)
        #: Data of the error, such as the balance in micros.
        self.metadata = dict(metadata or {})
        #: The headers of the response; their names are in lower case.
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        #: The key of the call, if it had one. The same call with the same key is charged once.
        self.idempotency_key = idempotency_key

    @property
    def request_id(self) -> Optional[str]:
        """The ``x-request-id`` of the response, for questions to the operator of the server."""
        return self.headers.get("x-request-id")

    @property
    def retry_after(self) -> Optional[int]:
        """When the server says that a retry can succeed, in seconds."""
        digits = re.fullmatch(r"[0-9]+", self.headers.get("retry-after", ""))
        # Nine digits are more than any wait, and int() refuses thousands of them.
        return int(digits[0][:9]) if digits else None

    @property
    def fields(self) -> List[Tuple[str, str]]:
        """The fields of the request that are not valid, with descriptions."""
        return [
            (violation.field, violation.description)
            for detail in self.details
            if isinstance(detail, BadRequest)
            for violation in detail.field_violations
        ]


class InvalidRequestError(VxError):
    """The request is not valid, or what it names does not exist."""


class AuthenticationError(VxError):
    """The API key is missing, unknown, revoked or expired."""


class PermissionDeniedError(VxError):
    """The API key or its account may not make the call."""


class BillingError(VxError):
    """The account cannot pay for the call."""


class RateLimitError(VxError):
    """A limit of calls is reached."""


class ServerError(VxError):
    """The server, or a model server behind it, failed."""


class ConnectionFailedError(VxError):
    """There was no complete response: the server was not reachable, or the connection ended."""


class TimedOutError(VxError):
    """The time limit of the call passed in this program."""
