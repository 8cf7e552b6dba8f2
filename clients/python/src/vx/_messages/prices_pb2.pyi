from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Prices(_message.Message):
    __slots__ = ("input", "cached_input", "cache_write", "output", "reasoning", "image", "request")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    input: int
    cached_input: int
    cache_write: int
    output: int
    reasoning: int
    image: int
    request: int
    def __init__(self, input: _Optional[int] = ..., cached_input: _Optional[int] = ..., cache_write: _Optional[int] = ..., output: _Optional[int] = ..., reasoning: _Optional[int] = ..., image: _Optional[int] = ..., request: _Optional[int] = ...) -> None: ...
