"""The errors of calls."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence, Tuple

from google.rpc.error_details_pb2 import BadRequest

if TYPE_CHECKING:
    from google.protobuf.message import Message


@dataclass(frozen=True)
class LimitDetails:
    """The limit that refused a call, and what it had counted. Amounts of cost are micros."""

    id: str
    #: The id of its account or key, or the name of its plan.
    owner_id: str
    metric: str
    window: str
    model: str
    per: str
    amount: int
    spent: int
    held: int
    needed: int
    #: None if it does not reset.
    resets_at: Optional[datetime.datetime]


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
    def limit(self) -> Optional[LimitDetails]:
        """The limit that refused the call, if one did."""
        data = self.metadata
        amounts = {name: data.get(name, "") for name in ("amount", "spent", "held", "needed")}
        if "limit_id" not in data or not all(re.fullmatch(r"[0-9]{1,19}", text) for text in amounts.values()):
            return None
        return LimitDetails(
            id=data["limit_id"],
            owner_id=data.get("limit_owner", ""),
            metric=data.get("metric", ""),
            window=data.get("window", ""),
            model=data.get("model", ""),
            per=data.get("per", ""),
            amount=int(amounts["amount"]),
            spent=int(amounts["spent"]),
            held=int(amounts["held"]),
            needed=int(amounts["needed"]),
            resets_at=_time_of(data.get("resets_at", "")),
        )

    @property
    def fields(self) -> List[Tuple[str, str]]:
        """The fields of the request that are not valid, with descriptions."""
        return [
            (violation.field, violation.description)
            for detail in self.details
            if isinstance(detail, BadRequest)
            for violation in detail.field_violations
        ]


def _time_of(text: str) -> Optional[datetime.datetime]:
    """A time such as 2027-01-01T00:00:00.000Z. The oldest Pythons read no Z."""
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None


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
