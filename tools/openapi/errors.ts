import { ERRORS, type Reason } from "../../src/domain/errors.ts";
import { surfaceOf } from "../../src/rules/policy.ts";
import { answerHeaders } from "./headers.ts";
import type { Operation } from "./operations.ts";
import type { Schema } from "./schema.ts";

const always = () => true;
const never = () => false;
const withBody = ({ bodyFields }: Operation) => bodyFields.length > 0;
const metered = ({ policy }: Operation) => policy.metered;
const isTopUp = ({ usual }: Operation) => usual.parent.name === "TopUpService";
const createsTopUp = ({ usual }: Operation) => usual.name === "CreateTopUp";

/** Whether an idempotency key identifies the call. */
export function takesIdempotencyKey(operation: Operation): boolean {
  return metered(operation) || createsTopUp(operation);
}

/** The operations that can return each reason. A new reason does not compile until it is added here. */
const IS_RETURNED_BY: Readonly<Record<Reason, (operation: Operation) => boolean>> = {
  invalid_session: never,
  sign_up_refused: never,
  invalid_invitation: never,
  member_limit_reached: never,
  last_owner: never,
  invalid_argument: always,
  context_length_exceeded: metered,
  max_cost_too_low: ({ usual }) => usual.name === "Generate",
  missing_api_key: always,
  invalid_api_key: always,
  revoked_api_key: always,
  expired_api_key: always,
  insufficient_balance: metered,
  payment_reversed: metered,
  topup_limit_reached: createsTopUp,
  payments_not_configured: isTopUp,
  budget_exceeded: metered,
  token_limit_exceeded: metered,
  generation_limit_exceeded: metered,
  concurrency_limit_reached: metered,
  address_not_allowed: () => true,
  account_suspended: ({ policy }) => policy.scope !== undefined,
  insufficient_scope: ({ policy }) => policy.scope !== undefined,
  not_found: ({ usual, pathFields }) => pathFields.length > 0 && !/^GetModel(Info)?$/.test(usual.name),
  model_not_found: ({ pathFields, bodyFields }) => [...pathFields, ...bodyFields].some(({ name }) => name === "model"),
  model_not_allowed: ({ pathFields, bodyFields }) => [...pathFields, ...bodyFields].some(({ name }) => name === "model"),
  idempotency_in_progress: metered,
  generation_interrupted: metered,
  cursor_expired: ({ queryFields }) => queryFields.some(({ name }) => name === "after"),
  webhook_limit_reached: ({ usual }) => usual.name === "CreateWebhook",
  webhook_disabled: ({ usual }) => usual.name === "Redeliver",
  key_limit_reached: ({ usual }) => usual.name === "CreateKey",
  key_creation_limit_reached: ({ usual }) => usual.name === "CreateKey",
  request_too_large: withBody,
  unsupported_media_type: withBody,
  idempotency_key_reused: takesIdempotencyKey,
  rate_limit_exceeded: ({ policy }) => policy.rateLimited,
  too_many_failed_authentications: always,
  internal: always,
  upstream_error: metered,
  unavailable: always,
  overloaded: always,
  deadline_exceeded: metered,
  // No documented operation returns these: they occur with other paths, verbs, protocols and listeners, and with
  // methods that are not implemented yet.
  thread_unsupported_request: ({ usual }) => usual.name === "CreateMessage",
  unexpected_compression: never,
  method_not_allowed: never,
  invalid_operator_token: never,
  insufficient_role: never,
  invalid_report_signature: never,
  last_admin: never,
  unimplemented: never,
};

const REASONS = Object.keys(ERRORS) as Reason[];

/** `npm run generate` runs without the compiler, so a forgotten reason is reported here. */
function occursIn(operation: Operation, reason: Reason): boolean {
  if (!Object.hasOwn(IS_RETURNED_BY, reason)) throw new Error(`add "${reason}" to IS_RETURNED_BY in tools/openapi/errors.ts`);
  return IS_RETURNED_BY[reason](operation);
}

/** The responses of an operation for each error status. */
export function errorResponses(operation: Operation): Schema {
  const byStatus = Map.groupBy(
    REASONS.filter((reason) => occursIn(operation, reason)),
    (reason) => ERRORS[reason].status,
  );
  const sorted = [...byStatus].sort(([one], [other]) => one - other);
  return Object.fromEntries(sorted.map(([status, reasons]) => [String(status), errorResponse(operation, status, reasons)]));
}

function errorResponse(operation: Operation, status: number, reasons: readonly Reason[]): Schema {
  const isAnthropic = surfaceOf(operation.usual.parent) === "anthropic";
  const prefix = isAnthropic ? "anthropic_" : "";
  const examples = reasons.map((reason) => [reason, { $ref: `#/components/examples/${prefix}${reason}` }]);
  return {
    description: reasons.map((reason) => `\`${reason}\`: ${ERRORS[reason].message}`).join("\n\n"),
    headers: answerHeaders(operation, status, reasons),
    content: {
      "application/json": {
        // One schema for all, because generators would create a type for every refinement.
        schema: { $ref: `#/components/schemas/${isAnthropic ? "AnthropicErrorBody" : "ErrorBody"}` },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

/** Reasons that at least one operation can return. */
export function documentedReasons(operations: readonly Operation[]): Reason[] {
  return REASONS.filter((reason) => operations.some((operation) => IS_RETURNED_BY[reason](operation)));
}

/** The names of the examples: each reason in the form of each API that can return it. */
export function errorExampleNames(operations: readonly Operation[]): string[] {
  const [anthropic = [], others = []] = [true, false].map((isAnthropic) =>
    operations.filter(({ usual }) => (surfaceOf(usual.parent) === "anthropic") === isAnthropic),
  );
  return [...documentedReasons(others), ...documentedReasons(anthropic).map((reason) => `anthropic_${reason}`)];
}

/** What only a 402 has. */
const FUNDS = {
  balance_micros: {
    type: "integer",
    description: "The balance in micros. Only in errors with status 402, like the following.",
  },
  held_micros: { type: "integer", description: "The part of the balance that running calls hold." },
  available_micros: { type: "integer", description: "The balance without that part." },
  required_micros: { type: "integer", description: "What the call can cost at most." },
  shortage_micros: { type: "integer", description: "What the available balance lacks." },
  owed_micros: {
    type: "integer",
    description: "What is owed for reversed payments. Only in the error payment_reversed.",
  },
  top_up_url: {
    type: "string",
    description: "Where credit can be added, if the operator of the server names an address.",
  },
};

/** The body of every error in Anthropic's API. */
export function anthropicErrorSchema(): Schema {
  const properties = {
    type: { type: "string", description: "The category of the error." },
    code: { type: "string", description: "The reason of the error, for programs." },
    message: { type: "string", description: "A description of the error for people. The text can change." },
    param: { type: ["string", "null"], description: "The invalid field." },
    status: { type: "string", description: "The gRPC code of the same error." },
    details: {
      type: "object",
      description: "The reason as `error_code`, and error details as defined in google.rpc as `items`.",
      additionalProperties: true,
    },
  };
  return {
    description: "The body of an error in Anthropic's API.",
    type: "object",
    properties: {
      type: { type: "string", enum: ["error"] },
      error: { type: "object", properties: { ...properties, ...FUNDS }, required: Object.keys(properties) },
      request_id: { type: "string", description: "The `x-request-id` of the response." },
    },
    required: ["type", "error", "request_id"],
  };
}

/** The envelope of every error. Generated Python does not type-check when a schema has the name of its only field. */
export function errorSchema(reasons: readonly Reason[]): Schema {
  const distinct = (pick: (reason: Reason) => string) => [...new Set(reasons.map(pick))];
  const properties = {
    code: { type: "string", enum: reasons, description: "The reason of the error, for programs." },
    type: {
      type: "string",
      enum: distinct((reason) => ERRORS[reason].type),
      description: "The category of the error.",
    },
    message: { type: "string", description: "A description of the error for people. The text can change." },
    param: {
      type: ["string", "null"],
      description: "The invalid field, such as `messages[3].content`.",
    },
    status: {
      type: "string",
      enum: distinct((reason) => ERRORS[reason].code),
      description: "The gRPC code of the same error.",
    },
    details: {
      type: "array",
      description: "Error details as defined in google.rpc. Always contains an ErrorInfo.",
      items: {
        type: "object",
        properties: { "@type": { type: "string", description: "The type of the detail." } },
        required: ["@type"],
        additionalProperties: true,
      },
    },
    request_id: { type: "string", description: "The `x-request-id` of the response." },
  };
  return {
    description: "The body of every error response.",
    type: "object",
    properties: {
      error: {
        type: "object",
        properties: { ...properties, ...FUNDS },
        required: Object.keys(properties),
      },
    },
    required: ["error"],
  };
}
