import {
  ListDeliveriesRequestSchema,
  TestWebhookResponseSchema,
  UpdateWebhookRequestSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { DeliverySchema, type Webhook, WebhookSchema } from "../../gen/vx/v1/webhook_pb.js";
import { allowedTextsOf } from "../rules/body-limits.ts";
import { call, list } from "./call.ts";
import { withAdmin } from "./client.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { visible } from "./output.ts";
import { ACCOUNT_TEXT, argument, JSON_RESPONSE, option, REASON, REQUIRED_REASON, required } from "./parameters.ts";
import { columnsOf, formatTable, printResponse, unlessZero } from "./print.ts";
import { command, noun } from "./row.ts";
import { overlapSeconds, type Parser, time } from "./values.ts";

const columns = columnsOf(
  WebhookSchema,
  "id, url, types, state, disabledReason as REASON, description, createdAt, previousExpiresAt as OLD SECRET UNTIL",
  { "the same in all rows": "accountId" },
  { types: (types) => types.join(",") || "all" },
);
const deliveryColumns = columnsOf(
  DeliverySchema,
  "eventId, type, accountId, state, attempts, attemptedAt as LAST, nextAttemptAt as NEXT, status, latencyMs as MS, error",
  { "of the event": "seq, createdAt, data", "long, only in --json": "answer" },
  { status: unlessZero },
);

/** The output of a command that returns the secret of a webhook. */
const secret = (done: string) => ({
  note: () => "The secret is shown only once. Store it now.",
  lost: ({ webhook }: { readonly webhook?: Webhook | undefined }) =>
    `the webhook ${visible(webhook?.id ?? "")} ${done}, but the secret could not be printed: rotate it`,
});

/** The word "all" stands for no types. */
const collectTypes: Parser<string[]> = (text, _, before = []) => (text === "all" ? before : [...before, text]);

const webhookId = argument("<webhook_id>", "the id of the webhook");
const OF_WEBHOOK = { webhookId, reason: REQUIRED_REASON };
const OF_ACCOUNT = { accountId: option("--account <account>", `${ACCOUNT_TEXT} (default: all accounts)`) };
const properties = {
  types: option("--type <type>", "a type of event, or all; can be repeated (default: all)", collectTypes),
  description: option("--description <text>", "what the endpoint is for"),
};

export const row = noun(
  [
    "create --url https://hooks.example.com/vx --type balance.depleted --reason 'new dashboard'",
    "deliveries wh_… --state failed",
    "redeliver wh_… --from 2030-01-31 --reason 'outage of the receiver'",
  ],
  {
    create: call("createWebhook", columns, {
      about: "Create a webhook for the events of an account, or of all accounts. Its secret is shown only once.",
      fields: {
        url: required("--url <url>", "the address that receives the events"),
        ...OF_ACCOUNT,
        ...properties,
        reason: REQUIRED_REASON,
      },
      ...secret("was created"),
      examples: ["--account acct_… --url https://hooks.example.com/vx --reason 'ticket 4711'"],
    }),
    list: call(
      "listWebhooks",
      ({ webhooks }) => (webhooks.length === 0 ? "There are no webhooks.\n" : formatTable(columns, webhooks)),
      {
        about: "List the webhooks of an account, or those for all accounts.",
        fields: OF_ACCOUNT,
        examples: ["--account acme"],
      },
    ),
    update: call("updateWebhook", columns, {
      about: "Change, pause or enable a webhook.",
      fields: {
        webhookId,
        url: option("--url <url>", "the new address"),
        ...properties,
        state: option("--state <state>", "the new state", allowedTextsOf(UpdateWebhookRequestSchema.field.state)),
        reason: REQUIRED_REASON,
      },
      needsOption: true,
      examples: ["wh_… --state paused --reason 'maintenance'", "wh_… --type all --reason 'ticket 4711'"],
    }),
    delete: call("deleteWebhook", (_, request) => `The webhook ${visible(request.webhookId)} was deleted.\n`, {
      about: "Delete a webhook.",
      fields: OF_WEBHOOK,
      examples: ["wh_… --reason 'ticket 4711'"],
    }),
    rotate: call("rotateWebhook", columns, {
      about: "Give a webhook a new secret, which is shown only once.",
      fields: {
        webhookId,
        overlapSeconds: option(
          "--overlap-seconds <n>",
          "how long deliveries are also signed with the present secret (default: not at all)",
          overlapSeconds,
        ),
        reason: REQUIRED_REASON,
      },
      ...secret("has a new secret"),
      examples: ["wh_… --overlap-seconds 86400 --reason 'ticket 4711'"],
    }),
    test: command({
      about: "Send a delivery now and show the outcome. Exits with 1 if it is not accepted.",
      parameters: { json: JSON_RESPONSE, webhookId, reason: REASON },
      examples: ["wh_…"],
      run: async ({ json, reason = "", ...request }) => {
        const response = await withAdmin((admin) => admin.testWebhook({ ...request, reason }));
        const { status = 0, latencyMs = 0, error = "", answer = "" } = response.outcome ?? {};
        const result = error === "" ? `The endpoint accepted the test: ${status}` : visible(error);
        const lines = [result, `${latencyMs} ms`, ...(answer === "" ? [] : [visible(answer)])];
        await printResponse(json, TestWebhookResponseSchema, response, () => `${lines.join("\n")}\n`);
        if (error !== "") throw new CommandFailure("the endpoint did not accept the test");
      },
    }),
    deliveries: list("listDeliveries", deliveryColumns, {
      about: "List the events that a webhook receives, the newest first.",
      none: "There are no such deliveries.",
      fields: {
        webhookId,
        state: option(
          "--state <state>",
          "only deliveries in this state",
          allowedTextsOf(ListDeliveriesRequestSchema.field.state),
        ),
      },
      examples: ["wh_… --state failed"],
    }),
    redeliver: call(
      "redeliver",
      ({ events, hasMore }) => `${events} events are delivered again.${hasMore ? " There are more: repeat the command." : ""}\n`,
      {
        about: "Deliver one event again, or the events of a time that did not arrive.",
        fields: {
          ...OF_WEBHOOK,
          eventId: option("--event <event_id>", "the event (this or --from is required)"),
          from: option("--from <time>", "the time of the first event", time),
          to: option("--to <time>", "the time before which the last event is (default: now)", time),
        },
        check: ({ eventId, from }) => {
          if ((eventId === "") === (from === undefined))
            throw usageFailure("add either --event or --from; only one of them can be used");
        },
        examples: [
          "wh_… --event evt_… --reason 'ticket 4711'",
          "wh_… --from 2030-01-31T08:00:00Z --to 2030-01-31T12:00:00Z --reason 'outage of the receiver'",
        ],
      },
    ),
  },
);
