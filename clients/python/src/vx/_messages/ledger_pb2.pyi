import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from vx._messages import prices_pb2 as _prices_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LedgerEntry(_message.Message):
    __slots__ = ("id", "seq", "kind", "amount_micros", "amount", "balance_after_micros", "balance_after", "reason", "request_id", "key_id", "model", "input_tokens", "output_tokens", "created_at", "generation_id", "user", "trace_id", "price_version", "prices", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens", "image_tokens", "images", "cache_write_1h_tokens", "price_tier", "price_list_version", "adjusted_entry_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    BALANCE_AFTER_MICROS_FIELD_NUMBER: _ClassVar[int]
    BALANCE_AFTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    PRICE_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    IMAGE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_1H_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PRICE_TIER_FIELD_NUMBER: _ClassVar[int]
    PRICE_LIST_VERSION_FIELD_NUMBER: _ClassVar[int]
    ADJUSTED_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    seq: int
    kind: str
    amount_micros: int
    amount: str
    balance_after_micros: int
    balance_after: str
    reason: str
    request_id: str
    key_id: str
    model: str
    input_tokens: int
    output_tokens: int
    created_at: _timestamp_pb2.Timestamp
    generation_id: str
    user: str
    trace_id: str
    price_version: int
    prices: _prices_pb2.Prices
    cached_input_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    image_tokens: int
    images: int
    cache_write_1h_tokens: int
    price_tier: int
    price_list_version: int
    adjusted_entry_id: str
    def __init__(self, id: _Optional[str] = ..., seq: _Optional[int] = ..., kind: _Optional[str] = ..., amount_micros: _Optional[int] = ..., amount: _Optional[str] = ..., balance_after_micros: _Optional[int] = ..., balance_after: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ..., key_id: _Optional[str] = ..., model: _Optional[str] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., generation_id: _Optional[str] = ..., user: _Optional[str] = ..., trace_id: _Optional[str] = ..., price_version: _Optional[int] = ..., prices: _Optional[_Union[_prices_pb2.Prices, _Mapping]] = ..., cached_input_tokens: _Optional[int] = ..., cache_write_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., image_tokens: _Optional[int] = ..., images: _Optional[int] = ..., cache_write_1h_tokens: _Optional[int] = ..., price_tier: _Optional[int] = ..., price_list_version: _Optional[int] = ..., adjusted_entry_id: _Optional[str] = ...) -> None: ...

class ListEntriesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "kind", "key_id", "model", "to")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    kind: str
    key_id: str
    model: str
    to: _timestamp_pb2.Timestamp
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., kind: _Optional[str] = ..., key_id: _Optional[str] = ..., model: _Optional[str] = ..., to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., **kwargs) -> None: ...

class ListEntriesResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[LedgerEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[LedgerEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetGenerationRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetGenerationResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: LedgerEntry
    def __init__(self, entry: _Optional[_Union[LedgerEntry, _Mapping]] = ...) -> None: ...
