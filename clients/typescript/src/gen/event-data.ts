// Written by tools/write-client-tables.ts.
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import {
  type AccountEvent,
  AccountEventSchema,
  type AutoTopUpEvent,
  AutoTopUpEventSchema,
  type BalanceDepletedEvent,
  BalanceDepletedEventSchema,
  type BalanceLowEvent,
  BalanceLowEventSchema,
  type EntryPostedEvent,
  EntryPostedEventSchema,
  type GrantExpiredEvent,
  GrantExpiredEventSchema,
  type KeyEvent,
  KeyEventSchema,
  type LimitThresholdEvent,
  LimitThresholdEventSchema,
  type MemberEvent,
  MemberEventSchema,
  type PriceChangedEvent,
  PriceChangedEventSchema,
  type TopUpEvent,
  TopUpEventSchema,
  type WebhookDisabledEvent,
  WebhookDisabledEventSchema,
  type WebhookTestEvent,
  WebhookTestEventSchema,
} from "./vx/v1/event_pb.ts";

/** The messages that the data of events are, by type. */
export type EventData = {
  readonly "balance.low": BalanceLowEvent;
  readonly "balance.depleted": BalanceDepletedEvent;
  readonly "limit.threshold": LimitThresholdEvent;
  readonly "credit.posted": EntryPostedEvent;
  readonly "adjustment.posted": EntryPostedEvent;
  readonly "topup.paid": TopUpEvent;
  readonly "topup.failed": TopUpEvent;
  readonly "topup.expired": TopUpEvent;
  readonly "topup.refunded": TopUpEvent;
  readonly "topup.disputed": TopUpEvent;
  readonly "topup.auto_failed": AutoTopUpEvent;
  readonly "topup.auto_disabled": AutoTopUpEvent;
  readonly "grant.expired": GrantExpiredEvent;
  readonly "key.created": KeyEvent;
  readonly "key.updated": KeyEvent;
  readonly "key.rotated": KeyEvent;
  readonly "key.revoked": KeyEvent;
  readonly "key.expiring": KeyEvent;
  readonly "member.invited": MemberEvent;
  readonly "member.joined": MemberEvent;
  readonly "member.removed": MemberEvent;
  readonly "account.suspended": AccountEvent;
  readonly "account.resumed": AccountEvent;
  readonly "webhook.disabled": WebhookDisabledEvent;
  readonly "webhook.test": WebhookTestEvent;
  readonly "price.changed": PriceChangedEvent;
};

export const EVENT_DATA: { readonly [Type in keyof EventData]: GenMessage<EventData[Type]> } = {
  "balance.low": BalanceLowEventSchema,
  "balance.depleted": BalanceDepletedEventSchema,
  "limit.threshold": LimitThresholdEventSchema,
  "credit.posted": EntryPostedEventSchema,
  "adjustment.posted": EntryPostedEventSchema,
  "topup.paid": TopUpEventSchema,
  "topup.failed": TopUpEventSchema,
  "topup.expired": TopUpEventSchema,
  "topup.refunded": TopUpEventSchema,
  "topup.disputed": TopUpEventSchema,
  "topup.auto_failed": AutoTopUpEventSchema,
  "topup.auto_disabled": AutoTopUpEventSchema,
  "grant.expired": GrantExpiredEventSchema,
  "key.created": KeyEventSchema,
  "key.updated": KeyEventSchema,
  "key.rotated": KeyEventSchema,
  "key.revoked": KeyEventSchema,
  "key.expiring": KeyEventSchema,
  "member.invited": MemberEventSchema,
  "member.joined": MemberEventSchema,
  "member.removed": MemberEventSchema,
  "account.suspended": AccountEventSchema,
  "account.resumed": AccountEventSchema,
  "webhook.disabled": WebhookDisabledEventSchema,
  "webhook.test": WebhookTestEventSchema,
  "price.changed": PriceChangedEventSchema,
};
