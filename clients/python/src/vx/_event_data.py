# Written by tools/write-client-tables.ts.
"""The message that the data of an event is, by its type."""

from __future__ import annotations

from google.protobuf.message import Message

from ._messages import event_pb2

EVENT_DATA: dict[str, type[Message]] = {
    "balance.low": event_pb2.BalanceLowEvent,
    "balance.depleted": event_pb2.BalanceDepletedEvent,
    "limit.threshold": event_pb2.LimitThresholdEvent,
    "credit.posted": event_pb2.EntryPostedEvent,
    "adjustment.posted": event_pb2.EntryPostedEvent,
    "topup.paid": event_pb2.TopUpEvent,
    "topup.failed": event_pb2.TopUpEvent,
    "topup.expired": event_pb2.TopUpEvent,
    "topup.refunded": event_pb2.TopUpEvent,
    "topup.disputed": event_pb2.TopUpEvent,
    "topup.auto_failed": event_pb2.AutoTopUpEvent,
    "topup.auto_disabled": event_pb2.AutoTopUpEvent,
    "grant.expired": event_pb2.GrantExpiredEvent,
    "key.created": event_pb2.KeyEvent,
    "key.updated": event_pb2.KeyEvent,
    "key.rotated": event_pb2.KeyEvent,
    "key.revoked": event_pb2.KeyEvent,
    "key.expiring": event_pb2.KeyEvent,
    "member.invited": event_pb2.MemberEvent,
    "member.joined": event_pb2.MemberEvent,
    "member.removed": event_pb2.MemberEvent,
    "account.suspended": event_pb2.AccountEvent,
    "account.resumed": event_pb2.AccountEvent,
    "webhook.disabled": event_pb2.WebhookDisabledEvent,
    "webhook.test": event_pb2.WebhookTestEvent,
    "price.changed": event_pb2.PriceChangedEvent,
}
