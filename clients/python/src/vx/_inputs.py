# Written by tools/write-python-inputs.ts.
"""The fields of requests. A field that is called `from` has the name `from_`."""

from __future__ import annotations

import datetime
from typing import Any, Literal, Mapping, Sequence, Union

from typing_extensions import Required, TypedDict

from ._messages import generate_pb2
from ._messages import limit_pb2


class ImageInput(TypedDict, total=False):
    url: str
    data: bytes
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    detail: Literal["auto", "low", "high"]


class ContentPartInput(TypedDict, total=False):
    text: str
    image: Union[ImageInput, generate_pb2.Image]


class ToolCallInput(TypedDict, total=False):
    id: Required[str]
    name: Required[str]
    arguments: str


class ReasoningInput(TypedDict, total=False):
    text: str
    signature: str
    encrypted: str


class MessageInput(TypedDict, total=False):
    role: Required[Literal["system", "user", "assistant", "tool"]]
    content: str
    parts: Sequence[Union[ContentPartInput, generate_pb2.ContentPart]]
    tool_call_id: str
    tool_calls: Sequence[Union[ToolCallInput, generate_pb2.ToolCall]]
    reasoning: Sequence[Union[ReasoningInput, generate_pb2.Reasoning]]


class ToolInput(TypedDict, total=False):
    name: Required[str]
    description: str
    parameters: Mapping[str, Any]
    strict: bool


class ResponseFormatInput(TypedDict, total=False):
    type: Required[Literal["text", "json", "json_schema"]]
    name: str
    schema: Mapping[str, Any]
    strict: bool


class GenerateInput(TypedDict, total=False):
    model: Required[str]
    messages: Required[Sequence[Union[MessageInput, generate_pb2.Message]]]
    max_tokens: int
    temperature: float
    stop: Sequence[str]
    tools: Sequence[Union[ToolInput, generate_pb2.Tool]]
    tool_choice: str
    parallel_tool_calls: bool
    response_format: Union[ResponseFormatInput, generate_pb2.ResponseFormat]
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"]
    top_p: float
    top_k: int
    seed: int
    presence_penalty: float
    frequency_penalty: float
    user: str
    max_cost_micros: int


class EmbedInput(TypedDict, total=False):
    model: Required[str]
    input: Required[Sequence[str]]
    dimensions: int


class ListModelsInput(TypedDict, total=False):
    page_size: int
    page_token: str
    limit: int
    after_id: str
    before_id: str


class ListKeysInput(TypedDict, total=False):
    page_size: int
    page_token: str
    include_playground: bool


class LimitInput(TypedDict, total=False):
    id: str
    metric: Required[Literal["cost", "tokens", "generations", "concurrent", "cost_alert"]]
    window: Literal["minute", "hour", "day", "week", "month", "total"]
    amount: int
    model: str
    per: Literal["user"]
    temporary_amount: int
    temporary_until: datetime.datetime
    owner: str
    owner_id: str
    spent: int
    held: int
    remaining: int
    resets_at: datetime.datetime
    counted_since: datetime.datetime
    set_by_operator: bool


class CreateKeyInput(TypedDict, total=False):
    name: Required[str]
    scopes: Sequence[Literal["generate", "read", "keys", "webhooks", "billing"]]
    rate_limit_rpm: int
    expires_at: datetime.datetime
    models: Sequence[str]
    limits: Sequence[Union[LimitInput, limit_pb2.Limit]]
    allowed_cidrs: Sequence[str]


class UpdateKeyInput(TypedDict, total=False):
    key_id: Required[str]
    name: str
    scopes: Sequence[Literal["generate", "read", "keys", "webhooks", "billing"]]
    rate_limit_rpm: int
    expires_at: datetime.datetime
    models: Sequence[str]
    limits: Sequence[Union[LimitInput, limit_pb2.Limit]]
    allowed_cidrs: Sequence[str]


class ListEntriesInput(TypedDict, total=False):
    page_size: int
    page_token: str
    kind: Literal["generation", "credit", "topup", "refund", "adjustment", "expiry"]
    key_id: str
    model: str
    from_: datetime.datetime
    to: datetime.datetime


class GetUsageInput(TypedDict, total=False):
    from_: datetime.datetime
    to: datetime.datetime
    group_by: Sequence[str]
    tz: str
    page_size: int
    page_token: str


class ListEventsInput(TypedDict, total=False):
    types: Sequence[str]
    after: str
    page_size: int
    order: Literal["asc", "desc"]


class WatchEventsInput(TypedDict, total=False):
    types: Sequence[str]
    after: str


class CreateWebhookInput(TypedDict, total=False):
    url: Required[str]
    types: Sequence[str]
    description: str


class UpdateWebhookInput(TypedDict, total=False):
    webhook_id: Required[str]
    url: str
    types: Sequence[str]
    description: str
    state: Literal["enabled", "paused"]


class ListDeliveriesInput(TypedDict, total=False):
    webhook_id: Required[str]
    state: Literal["pending", "delivered", "failed"]
    page_size: int
    page_token: str


class RedeliverInput(TypedDict, total=False):
    webhook_id: Required[str]
    event_id: str
    from_: datetime.datetime
    to: datetime.datetime
