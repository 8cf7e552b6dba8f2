"""Which calls are repeated, and when."""

from __future__ import annotations

import random
import time
import uuid
from typing import Dict, Mapping, Optional

from typing_extensions import TypedDict

from ._errors import ConnectionFailedError, TimedOutError, VxError
from ._reasons import RETRIED

_FIRST_DELAY = 0.5
_MAX_DELAY = 8.0
#: A rate limit is at most a minute away; callers decide about longer waits.
_MAX_RETRY_AFTER = 60


class CallOptions(TypedDict, total=False):
    """What a caller can set for one call."""

    #: The time limit of the call with all its retries, in seconds. 0 for none.
    timeout: float
    #: How often the call is repeated after an error that a retry can heal.
    max_retries: int
    #: The key of the call, at most 255 characters. Default: a new one for each call, and none for streams. With a key, a
    #: generation continues when its caller leaves, and is charged in full; the same call with the same key returns it.
    idempotency_key: str
    headers: Mapping[str, str]


class Attempts:
    """The attempts of one call."""

    def __init__(self, effect: str, options: CallOptions, timeout: float, max_retries: int) -> None:
        self._seconds = options.get("timeout", timeout)
        self.restart()
        self._left = options.get("max_retries", max_retries)
        self._made = 0
        given = options.get("headers", {})
        self._headers = {name: value for name, value in given.items() if name.lower() != "idempotency-key"}
        in_headers = (value for name, value in given.items() if name.lower() == "idempotency-key")
        #: An empty key means none.
        self.key = options.get("idempotency_key") or next(in_headers, None) or None
        if effect == "unkeyed" and self.key is not None:
            effect = "keyed"
        if effect == "keyed" and self.key is None:
            self.key = uuid.uuid4().hex
        self._effect = effect
        if effect == "keyed" and self.key is not None:
            self._headers["idempotency-key"] = self.key

    def restart(self) -> None:
        """Begins a new time limit."""
        self._ends_at = time.monotonic() + self._seconds if self._seconds > 0 else None

    def succeed(self) -> None:
        """The next failure is the first one again."""
        self._made = 0

    @property
    def remaining(self) -> Optional[float]:
        """The rest of the time limit, in seconds."""
        return None if self._ends_at is None else max(0.001, self._ends_at - time.monotonic())

    def check_time(self) -> None:
        """Raises if the time limit passed: HTTP libraries limit each read, not their sum."""
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            raise TimedOutError("the time limit of the call passed", code="deadline_exceeded")

    def headers(self) -> Dict[str, str]:
        remaining = self.remaining
        if remaining is None:
            return self._headers
        return {**self._headers, "connect-timeout-ms": str(max(1, int(remaining * 1000)))}

    def delay_after(self, error: VxError) -> float:
        """The time before the next attempt, in seconds. Raises the error if it is final."""
        error.idempotency_key = self.key
        delay = self._delay_of(error)
        remaining = self.remaining
        is_late = remaining is not None and delay >= remaining
        if self._made >= self._left or is_late or not self._is_retried(error):
            raise error
        self._made += 1
        return delay

    def _is_retried(self, error: VxError) -> bool:
        if isinstance(error, TimedOutError) or (error.retry_after or 0) > _MAX_RETRY_AFTER:
            return False
        # A refusal before the call ran; after any other error, the call may have had its effect.
        has_not_run = error.code == "resource_exhausted" or error.reason == "overloaded"
        if self._effect == "write" and not has_not_run:
            return False
        if self._effect == "unkeyed" and error.reason is None:
            return False
        advice = error.headers.get("x-should-retry")
        if advice is not None:
            return advice == "true"
        if isinstance(error, ConnectionFailedError):
            return True
        return error.code == "unavailable" if error.reason is None else error.reason in RETRIED

    def _delay_of(self, error: VxError) -> float:
        """As the server says, else twice as long as before, and never the same for callers that failed together."""
        spread = 0.5 + random.random() / 2
        if error.retry_after is not None:
            return error.retry_after + spread * 0.1
        delay: float = min(_FIRST_DELAY * 2 ** min(self._made, 10), _MAX_DELAY)
        return delay * spread
