import { DomainError, type DomainErrorOptions, type Reason } from "../../../domain/errors.ts";
import type { Model } from "../../../domain/model.ts";
import { anthropicErrorBody } from "../../errors/anthropic-error-body.ts";
import { errorBody } from "../../errors/rest-error-body.ts";
import { REQUEST_ID } from "./examples.ts";

/** The message and details of each reason in the examples. */
function factsOf(model: Model): Partial<Record<Reason, DomainErrorOptions>> {
  const unknown = `there is no model "${model.id}-tiny"`;
  const tooLong = `have at least ${model.contextWindow + 812} tokens, but the context window of "${model.id}" has ${model.contextWindow} for messages and reply`;
  const tooLow = "is $0.00002, but the input and one token of output can cost $0.000029";
  return {
    invalid_argument: {
      message: "messages[3].content: must be at most 400000 characters",
      fields: [{ field: "messages[3].content", description: "must be at most 400000 characters" }],
    },
    context_length_exceeded: {
      message: `messages: ${tooLong}`,
      fields: [{ field: "messages", description: tooLong }],
      metadata: {
        context_window: String(model.contextWindow),
        input_tokens: String(model.contextWindow + 812),
      },
    },
    model_not_found: {
      message: `There is no model "${model.id}-tiny".`,
      fields: [{ field: "model", description: unknown }],
    },
    max_cost_too_low: {
      message: `max_cost_micros: ${tooLow}`,
      fields: [{ field: "max_cost_micros", description: tooLow }],
      metadata: { max_cost_micros: "20", required_micros: "29" },
    },
    insufficient_balance: {
      message:
        "This call can cost up to $0.000029, but the balance is $0.000028. Top up the account, or lower max_tokens.",
      metadata: { balance_micros: "28", held_micros: "0", required_micros: "29" },
    },
    key_limit_reached: {
      message: 'The plan "free" allows 2 active keys. Revoke one that is not used.',
      metadata: { plan: "free", max_active_keys: "2" },
    },
    idempotency_in_progress: { retryAfterSeconds: 1 },
    generation_interrupted: {
      message:
        "The response of the first call with this idempotency key was interrupted: the server stopped. Its usage was charged once. Send a new idempotency key to generate again.",
      metadata: { first_reason: "unavailable" },
    },
    insufficient_scope: {
      message: 'The API key lacks the scope "keys".',
      metadata: { scope: "keys" },
    },
    rate_limit_exceeded: {
      message: "The limit of 60 requests per minute of this key is exceeded. Wait 34 s.",
      metadata: { rate_limit_rpm: "60" },
      retryAfterSeconds: 34,
    },
    key_creation_limit_reached: {
      message: 'The account\'s keys can create 20 keys per hour on the plan "free". Wait 1034 s.',
      metadata: { plan: "free", max_keys_created_per_hour: "20" },
      retryAfterSeconds: 1034,
    },
    too_many_failed_authentications: { retryAfterSeconds: 34 },
  };
}

/** The body of an error, created by the same code as in responses. */
export function errorExample(reason: Reason, model: Model): unknown {
  return exampleOf(errorBody, reason, model);
}

/** The same in Anthropic's API. */
export function anthropicErrorExample(reason: Reason, model: Model): unknown {
  return exampleOf(anthropicErrorBody, reason, model);
}

function exampleOf(bodyOf: typeof errorBody, reason: Reason, model: Model): unknown {
  return JSON.parse(bodyOf(new DomainError(reason, factsOf(model)[reason]), REQUEST_ID));
}
