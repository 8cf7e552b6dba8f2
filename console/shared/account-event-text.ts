import { getOption, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { event_types as eventTypes } from "../../gen/vx/options/v1/options_pb.js";
import { type Event, file_vx_v1_event } from "../../gen/vx/v1/event_pb.js";
import { limitText } from "./limit-list.tsx";
import { moneyText } from "./money.tsx";

/** All types of events of an account: a test of a webhook is none. */
export const ACCOUNT_EVENT_TYPES: readonly string[] = file_vx_v1_event.messages
  .flatMap((message) => getOption(message, eventTypes))
  .filter((type) => type !== "webhook.test");

const TEXTS: Readonly<Record<string, (data: JsonObject) => string>> = {
  "balance.low": (data) => `The balance is below ${amount(data.low_balance_micros)}`,
  "balance.depleted": (data) =>
    `A call that can cost ${amount(data.required_micros)} was refused at a balance of ${amount(data.balance_micros)}`,
  "limit.threshold": (data) => `${String(data.percent)} % of a limit are used: ${limitOf(data.limit)}`,
  "credit.posted": (data) => `Credit of ${amount(data.amount_micros)}`,
  "adjustment.posted": (data) => `Adjustment of ${amount(data.amount_micros)}`,
  "grant.expired": (data) => `Credit of ${amount(data.amount_micros)} expired`,
  "topup.paid": (data) => `A payment of ${amount(data.amount_micros)} was credited`,
  "topup.failed": (data) => `A payment of ${amount(data.amount_micros)} failed`,
  "topup.expired": (data) => `A payment of ${amount(data.amount_micros)} was not made in time`,
  "topup.refunded": (data) => `${amount(data.refunded_micros)} of a payment of ${amount(data.amount_micros)} are refunded`,
  "topup.disputed": (data) => `${amount(data.disputed_micros)} of a payment of ${amount(data.amount_micros)} are disputed`,
  "topup.auto_failed": (data) =>
    `An automatic top-up of ${amount(data.amount_micros)} was not paid: ${wordsOf(String(data.reason))}`,
  "topup.auto_disabled": (data) => `Automatic top-ups were stopped: ${stopText(data.reason)}`,
  "key.created": (data) => `The key “${String(data.name)}” was created`,
  "key.updated": (data) => `The key “${String(data.name)}” was changed`,
  "key.rotated": (data) => `The key “${String(data.name)}” was rotated`,
  "key.revoked": (data) => `The key “${String(data.name)}” was revoked`,
  "key.expiring": (data) => `The key “${String(data.name)}” expires in ${daysText(data.days)}`,
  "account.suspended": () => "The account was suspended",
  "account.resumed": () => "The account was resumed",
  "member.invited": (data) => `A person was invited with the role “${String(data.role)}”`,
  "member.joined": (data) => `A person joined with the role “${String(data.role)}”`,
  "member.removed": () => "A member was removed or left",
  "price.changed": (data) => `The prices of ${String(data.model) || "all models"} changed`,
  "webhook.disabled": (data) => `The webhook to ${String(data.url)} was disabled`,
};

/** What happened, in one line. Types that are newer than this page have only their name. */
export function accountEventText({ type, data = {} }: Pick<Event, "type" | "data">): string {
  return TEXTS[type]?.(data) ?? type;
}

/** The data of an event by names, as the viewer reads it. */
export function eventDetails({ data = {} }: Pick<Event, "data">): readonly (readonly [string, string])[] {
  return Object.entries(data).map(([name, value]) =>
    name.endsWith("_micros")
      ? [wordsOf(name.slice(0, -"_micros".length)), amount(value)]
      : [wordsOf(name), typeof value === "object" ? JSON.stringify(value) : String(value)],
  );
}

function wordsOf(name: string): string {
  return name.replaceAll("_", " ");
}

/** Micros as money. */
function amount(value: JsonValue | undefined): string {
  return typeof value === "number" ? moneyText(BigInt(value)) : "an amount";
}

function stopText(reason: JsonValue | undefined): string {
  return reason === "failures" ? "three payments failed in a row" : `by ${String(reason)}`;
}

function daysText(days: JsonValue | undefined): string {
  return days === 1 ? "1 day" : `${String(days)} days`;
}

function limitOf(limit: JsonValue | undefined): string {
  const { metric, window } = (limit ?? {}) as Readonly<Record<string, unknown>>;
  return limitText({ metric: String(metric), window: String(window) });
}
