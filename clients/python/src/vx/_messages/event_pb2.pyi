import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from vx._messages import limit_pb2 as _limit_pb2
from vx._messages import prices_pb2 as _prices_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("id", "type", "created_at", "account_id", "data", "seq")
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    id: str
    type: str
    created_at: _timestamp_pb2.Timestamp
    account_id: str
    data: _struct_pb2.Struct
    seq: int
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., account_id: _Optional[str] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., seq: _Optional[int] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("types", "after", "page_size", "order")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[str]
    after: str
    page_size: int
    order: str
    def __init__(self, types: _Optional[_Iterable[str]] = ..., after: _Optional[str] = ..., page_size: _Optional[int] = ..., order: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_after", "has_more")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_AFTER_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next_after: str
    has_more: bool
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next_after: _Optional[str] = ..., has_more: bool = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("types", "after")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[str]
    after: str
    def __init__(self, types: _Optional[_Iterable[str]] = ..., after: _Optional[str] = ...) -> None: ...

class WatchEventsResponse(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: Event
    def __init__(self, event: _Optional[_Union[Event, _Mapping]] = ...) -> None: ...

class BalanceLowEvent(_message.Message):
    __slots__ = ("balance_micros", "low_balance_micros")
    BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    LOW_BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    balance_micros: int
    low_balance_micros: int
    def __init__(self, balance_micros: _Optional[int] = ..., low_balance_micros: _Optional[int] = ...) -> None: ...

class BalanceDepletedEvent(_message.Message):
    __slots__ = ("balance_micros", "required_micros")
    BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_MICROS_FIELD_NUMBER: _ClassVar[int]
    balance_micros: int
    required_micros: int
    def __init__(self, balance_micros: _Optional[int] = ..., required_micros: _Optional[int] = ...) -> None: ...

class LimitThresholdEvent(_message.Message):
    __slots__ = ("limit", "percent", "user")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    limit: _limit_pb2.Limit
    percent: int
    user: str
    def __init__(self, limit: _Optional[_Union[_limit_pb2.Limit, _Mapping]] = ..., percent: _Optional[int] = ..., user: _Optional[str] = ...) -> None: ...

class EntryPostedEvent(_message.Message):
    __slots__ = ("entry_id", "amount_micros", "balance_after_micros", "reason")
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    BALANCE_AFTER_MICROS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    entry_id: str
    amount_micros: int
    balance_after_micros: int
    reason: str
    def __init__(self, entry_id: _Optional[str] = ..., amount_micros: _Optional[int] = ..., balance_after_micros: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class TopUpEvent(_message.Message):
    __slots__ = ("topup_id", "state", "amount_micros", "refunded_micros", "disputed_micros", "entry_id", "balance_micros", "owed_micros", "automatic")
    TOPUP_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    REFUNDED_MICROS_FIELD_NUMBER: _ClassVar[int]
    DISPUTED_MICROS_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    OWED_MICROS_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    topup_id: str
    state: str
    amount_micros: int
    refunded_micros: int
    disputed_micros: int
    entry_id: str
    balance_micros: int
    owed_micros: int
    automatic: bool
    def __init__(self, topup_id: _Optional[str] = ..., state: _Optional[str] = ..., amount_micros: _Optional[int] = ..., refunded_micros: _Optional[int] = ..., disputed_micros: _Optional[int] = ..., entry_id: _Optional[str] = ..., balance_micros: _Optional[int] = ..., owed_micros: _Optional[int] = ..., automatic: bool = ...) -> None: ...

class AutoTopUpEvent(_message.Message):
    __slots__ = ("topup_id", "reason", "failures", "amount_micros", "monthly_max_micros", "balance_micros")
    TOPUP_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    MONTHLY_MAX_MICROS_FIELD_NUMBER: _ClassVar[int]
    BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    topup_id: str
    reason: str
    failures: int
    amount_micros: int
    monthly_max_micros: int
    balance_micros: int
    def __init__(self, topup_id: _Optional[str] = ..., reason: _Optional[str] = ..., failures: _Optional[int] = ..., amount_micros: _Optional[int] = ..., monthly_max_micros: _Optional[int] = ..., balance_micros: _Optional[int] = ...) -> None: ...

class GrantExpiredEvent(_message.Message):
    __slots__ = ("entry_id", "credit_id", "amount_micros", "balance_after_micros", "expires_at")
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    CREDIT_ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    BALANCE_AFTER_MICROS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    entry_id: str
    credit_id: str
    amount_micros: int
    balance_after_micros: int
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, entry_id: _Optional[str] = ..., credit_id: _Optional[str] = ..., amount_micros: _Optional[int] = ..., balance_after_micros: _Optional[int] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class KeyEvent(_message.Message):
    __slots__ = ("key_id", "name", "fields", "previous_expires_at", "by", "expires_at", "days")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    name: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    previous_expires_at: _timestamp_pb2.Timestamp
    by: str
    expires_at: _timestamp_pb2.Timestamp
    days: int
    def __init__(self, key_id: _Optional[str] = ..., name: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ..., previous_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., by: _Optional[str] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., days: _Optional[int] = ...) -> None: ...

class MemberEvent(_message.Message):
    __slots__ = ("person_id", "role", "invitation_id")
    PERSON_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INVITATION_ID_FIELD_NUMBER: _ClassVar[int]
    person_id: str
    role: str
    invitation_id: str
    def __init__(self, person_id: _Optional[str] = ..., role: _Optional[str] = ..., invitation_id: _Optional[str] = ...) -> None: ...

class AccountEvent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WebhookDisabledEvent(_message.Message):
    __slots__ = ("webhook_id", "url", "reason")
    WEBHOOK_ID_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    webhook_id: str
    url: str
    reason: str
    def __init__(self, webhook_id: _Optional[str] = ..., url: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class WebhookTestEvent(_message.Message):
    __slots__ = ("webhook_id",)
    WEBHOOK_ID_FIELD_NUMBER: _ClassVar[int]
    webhook_id: str
    def __init__(self, webhook_id: _Optional[str] = ...) -> None: ...

class PriceChangedEvent(_message.Message):
    __slots__ = ("model", "version", "prices", "previous", "discount_bps")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    DISCOUNT_BPS_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: int
    prices: _prices_pb2.Prices
    previous: _prices_pb2.Prices
    discount_bps: int
    def __init__(self, model: _Optional[str] = ..., version: _Optional[int] = ..., prices: _Optional[_Union[_prices_pb2.Prices, _Mapping]] = ..., previous: _Optional[_Union[_prices_pb2.Prices, _Mapping]] = ..., discount_bps: _Optional[int] = ...) -> None: ...
