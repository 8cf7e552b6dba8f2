"""What synchronous and asynchronous clients have in common."""

from __future__ import annotations

import os
import re
from typing import Dict, Mapping, Optional

from ._version import __version__

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_TIMEOUT = 600.0
DEFAULT_MAX_RETRIES = 2

#: What a header can have. HTTP libraries quote the value of a header that they refuse, and errors must not show a key.
_KEY = re.compile(r"[!-~]+")


class Settings:
    def __init__(
        self,
        url: Optional[str],
        key: Optional[str],
        timeout: float,
        max_retries: int,
        headers: Optional[Mapping[str, str]],
    ) -> None:
        secret = (key if key is not None else os.environ.get("VX_KEY", "")).strip()
        if not secret:
            raise ValueError("There is no API key: pass `key`, or set the variable VX_KEY.")
        if _KEY.fullmatch(secret) is None:
            raise ValueError("The API key has a space, a line end or another character that no key has.")
        self.url = (url or os.environ.get("VX_URL") or DEFAULT_URL).rstrip("/")
        self.timeout = timeout
        self.max_retries = max_retries
        self.headers: Dict[str, str] = {
            "user-agent": f"vx-python/{__version__}",
            **(headers or {}),
            "authorization": f"Bearer {secret}",
            "connect-protocol-version": "1",
        }
