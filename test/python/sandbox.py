"""The models of the sandbox, and what clients ask of them."""

import math
import os
from typing import Literal

from pydantic import BaseModel, Field

BASE_URL = f"{os.environ['VX_URL']}/v1"
MODEL = "vx-sandbox-small"
EMBEDDING_MODEL = "vx-sandbox-embed"
REPLY = "This is a reply of the sandbox."
# A directive makes the sandbox call the tool.
CALL_WEATHER = "[[tool=weather]] What is the weather in Paris?"
HELLO = [{"role": "user", "content": "Hello"}]


class Weather(BaseModel):
    """The weather of a city."""

    city: str = Field(min_length=3)
    days: int = Field(ge=2, le=5)


class Speaker(BaseModel):
    name: str
    email: str


class Event(BaseModel):
    title: str
    kind: Literal["talk", "workshop"]
    seats: int = Field(gt=0)
    speakers: list[Speaker]


def is_unit(vector):
    return len(vector) > 0 and abs(math.hypot(*vector) - 1) < 1e-3
