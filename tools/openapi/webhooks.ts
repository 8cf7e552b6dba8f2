import { EVENT_TYPES } from "../../src/events/types.ts";
import { EVENT_DATA } from "./event-examples.ts";
import type { Schema } from "./schema.ts";
import type { Schemas } from "./schemas.ts";

/** The requests that a webhook gets, by the type of the event. */
export function webhooksOf(schemas: Schemas): Readonly<Record<string, Schema>> {
  return Object.fromEntries(
    [...EVENT_TYPES].map(([type, data]) => [
      type,
      {
        post: {
          operationId: operationIdOf(type),
          summary: type,
          description: RECEIVING,
          // The signature takes the place of an API key.
          security: [],
          parameters: HEADERS,
          requestBody: {
            required: true,
            content: {
              "application/json": {
                schema: bodySchema(type, schemas.event(data)),
                example: bodyExample(type),
              },
            },
          },
          responses: RESPONSES,
        },
      },
    ]),
  );
}

/** KeyCreated for "key.created". */
function operationIdOf(type: string): string {
  return type.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const RECEIVING =
  "The request is signed as [Standard Webhooks](https://www.standardwebhooks.com) describes. Verify the signature over the bytes of the body before you use it. An event can arrive more than once, with the same `webhook-id`. Ignore fields and types that you do not know.";

const HEADERS: readonly Schema[] = [
  header("webhook-id", "The id of the event, the same in all attempts.", { type: "string" }),
  header("webhook-timestamp", "The time of the attempt, in seconds since 1970.", {
    type: "string",
    pattern: "^[0-9]+$",
  }),
  header(
    "webhook-signature",
    "The signatures `v1,<base64>`, separated by spaces: HMAC-SHA256 with the secret of the webhook over `<webhook-id>.<webhook-timestamp>.<body>`. After a rotation there are two until the secret before it ends.",
    { type: "string" },
  ),
];

function header(name: string, description: string, schema: Schema): Schema {
  return { name, in: "header", description, required: true, schema };
}

const RESPONSES: Schema = {
  "2XX": { description: "The event is accepted." },
  "410": { description: "The webhook is disabled: it gets no more events." },
  default: {
    description:
      "The event is sent again later, also after a redirect and if there is no response within 15 seconds. `Retry-After` can delay the next attempt.",
  },
};

function bodySchema(type: string, data: Schema): Schema {
  const properties = {
    id: { description: "The id of the event.", type: "string" },
    type: { description: "The type of the event.", type: "string", const: type },
    timestamp: { description: "The time of the event.", type: "string", format: "date-time" },
    account_id: {
      description: "The id of the account. Empty for events about the prices of models.",
      type: "string",
    },
    seq: { description: "The number of the event in its account.", type: "integer", format: "int64" },
    data,
  };
  return { type: "object", properties, required: Object.keys(properties) };
}

function bodyExample(type: string): Schema {
  const data = EVENT_DATA[type];
  if (data === undefined) throw new Error(`the event ${type} has no example: add one to event-examples.ts`);
  const isTest = type === "webhook.test";
  return {
    id: isTest ? "test_req_01kb0zq5p9e8tvm4x2c7h3j6rq" : "evt_01kb0zq5p9e8tvm4x2c7h3j6rq",
    type,
    timestamp: "2026-11-26T14:03:21.481Z",
    account_id: type === "price.changed" ? "" : "acct_01kam4xxa5fzsbw0pdmm2h60vq",
    seq: isTest ? 0 : 12,
    data,
  };
}
