from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Prices(_message.Message):
    __slots__ = ("input", "cached_input", "cache_write", "output", "reasoning", "image", "request", "cache_write_1h", "tiers")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_1H_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    input: int
    cached_input: int
    cache_write: int
    output: int
    reasoning: int
    image: int
    request: int
    cache_write_1h: int
    tiers: _containers.RepeatedCompositeFieldContainer[PriceTier]
    def __init__(self, input: _Optional[int] = ..., cached_input: _Optional[int] = ..., cache_write: _Optional[int] = ..., output: _Optional[int] = ..., reasoning: _Optional[int] = ..., image: _Optional[int] = ..., request: _Optional[int] = ..., cache_write_1h: _Optional[int] = ..., tiers: _Optional[_Iterable[_Union[PriceTier, _Mapping]]] = ...) -> None: ...

class PriceTier(_message.Message):
    __slots__ = ("above_input_tokens", "input", "cached_input", "cache_write", "cache_write_1h", "output", "reasoning", "image", "request")
    ABOVE_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_1H_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    above_input_tokens: int
    input: int
    cached_input: int
    cache_write: int
    cache_write_1h: int
    output: int
    reasoning: int
    image: int
    request: int
    def __init__(self, above_input_tokens: _Optional[int] = ..., input: _Optional[int] = ..., cached_input: _Optional[int] = ..., cache_write: _Optional[int] = ..., cache_write_1h: _Optional[int] = ..., output: _Optional[int] = ..., reasoning: _Optional[int] = ..., image: _Optional[int] = ..., request: _Optional[int] = ...) -> None: ...
