import { DomainError, type DomainErrorOptions, type Reason } from "../../src/domain/errors.ts";
import type { RefusingLimit } from "../../src/generations/bill-statement.ts";
import { limitExceeded } from "../../src/generations/refusals.ts";
import { anthropicErrorBody, errorBody } from "../../src/server/errors/http-error.ts";
import type { ExampleValues } from "../../src/server/pages/openapi-page.ts";
import { eventText } from "../../src/server/rest/surfaces.ts";
import { operationExamples, REQUEST_ID } from "./examples.ts";
import type { FurtherExample, OperationExample } from "./operation-example.ts";
import { clean, type Schema } from "./schema.ts";

type Content = Readonly<Record<string, Schema>>;
type Operation = Schema & {
  readonly operationId: string;
  readonly description: string;
  readonly parameters?: readonly (Schema & { readonly name: string })[];
  readonly requestBody?: Schema & { readonly content: Content };
  readonly responses: Readonly<Record<string, Schema & { readonly content: Content }>>;
};
type OpenApi = Schema & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Schema & { readonly examples: Readonly<Record<string, Schema>> };
};

/** The document with examples. */
export function insertExamples(document: Schema, values: ExampleValues): Schema {
  const { paths, components, ...others } = document as OpenApi;
  const examples = operationExamples(values);
  const withExample = (operation: Operation) => {
    const example = examples[operation.operationId];
    if (!example) throw new Error(`${operation.operationId} has no example: add one to examples.ts`);
    return insertExample(operation, example);
  };
  return {
    ...others,
    paths: mapValues(paths, (verbs) => mapValues(verbs, withExample)),
    components: {
      ...components,
      examples: mapValues(components.examples, (_, name) => ({
        value: errorValue(name, values.generation),
      })),
    },
  };
}

/** The prefix of the examples in the format of Anthropic's API. */
const ANTHROPIC = "anthropic_";

function errorValue(name: string, model: ErrorModel): unknown {
  return name.startsWith(ANTHROPIC)
    ? anthropicErrorExample(name.slice(ANTHROPIC.length) as Reason, model)
    : errorExample(name as Reason, model);
}

function insertExample(operation: Operation, example: OperationExample): Operation {
  const { description, parameters, requestBody, responses } = operation;
  const { more = {} } = example;
  const values = { ...example.path, ...example.query };
  const content = {
    "application/json": withMore(example.response, more, ({ response }) => response),
    "text/event-stream": { example: streamExample(example) },
  };
  const success = responses["200"] as Operation["responses"][string];
  return {
    ...operation,
    ...(example.missing !== undefined && { description: description + example.missing }),
    ...(parameters && {
      parameters: parameters.map((one) => clean({ ...one, example: values[one.name] }) as typeof one),
    }),
    ...(requestBody && {
      requestBody: {
        ...requestBody,
        content: insert(requestBody.content, {
          "application/json": withMore(example.body, more, ({ body }) => body),
        }),
      },
    }),
    responses: { ...responses, "200": { ...success, content: insert(success.content, content) } },
  };
}

/** A media type has either one example or several with titles. */
function withMore(
  example: unknown,
  more: Readonly<Record<string, FurtherExample>>,
  partOf: (one: FurtherExample) => unknown,
): Schema {
  if (Object.keys(more).length === 0) return { example };
  const others = mapValues(more, (one) => ({ summary: one.summary, value: partOf(one) }));
  return { examples: { Simple: { value: example }, ...others } };
}

function insert(content: Content, examples: Readonly<Record<string, Schema>>): Content {
  return mapValues(content, (media, type) => {
    const { example: _, examples: __, ...others } = media;
    return clean({ ...others, ...examples[type] });
  });
}

function mapValues<Value, Result>(
  object: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

/** An error of a limit, with the same code as in responses. */
function limitFacts(limit: Partial<RefusingLimit> & Pick<RefusingLimit, "metric" | "window" | "amount">): DomainErrorOptions {
  const reset = { at: new Date("2026-12-01T00:00:00Z"), seconds: 86_400 };
  const refusing = {
    id: "lim_01kam4xxa5fzsbw0pdmm2h60vq",
    ownerId: "acct_01kam4xxa5fzsbw0pdmm2h60vq",
    model: "",
    per: "",
    spent: 0n,
    held: 0n,
    needed: 0n,
    reset: limit.window === "" ? undefined : reset,
    ...limit,
  };
  const funds = { balanceMicros: 9_000_000n, heldMicros: 0n };
  const error = limitExceeded(refusing, funds, { requiredMicros: refusing.needed, minimum: undefined });
  const { message, metadata, retryAfterSeconds } = error;
  return { message, metadata, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
}

/** The errors of limits. */
function limitErrors() {
  return {
    budget_exceeded: limitFacts({
      metric: "cost",
      window: "month",
      amount: 25_000_000n,
      spent: 24_999_980n,
      needed: 29n,
    }),
    token_limit_exceeded: limitFacts({
      metric: "tokens",
      window: "day",
      amount: 100_000n,
      spent: 99_900n,
      needed: 218n,
    }),
    generation_limit_exceeded: limitFacts({
      metric: "generations",
      window: "day",
      amount: 500n,
      spent: 500n,
      needed: 1n,
    }),
    concurrency_limit_reached: limitFacts({
      metric: "concurrent",
      window: "",
      amount: 4n,
      held: 4n,
      needed: 1n,
    }),
  };
}

/** What the examples of errors say about a model. */
type ErrorModel = Pick<ExampleValues["generation"], "id" | "contextWindow" | "tooManyTokens">;

/** The message and details of each reason in the examples. */
function factsOf(model: ErrorModel): Partial<Record<Reason, DomainErrorOptions>> {
  const unknown = `there is no model "${model.id}-tiny"`;
  const tooLong = `have at least ${model.tooManyTokens} tokens, but the context window of "${model.id}" has ${model.contextWindow} for messages and reply`;
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
        context_window: model.contextWindow,
        input_tokens: model.tooManyTokens,
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
    payment_reversed: {
      message: "A payment into the account was refunded or disputed after it was spent: $4.20 is owed. Top up the account.",
      metadata: {
        balance_micros: "0",
        held_micros: "0",
        available_micros: "0",
        required_micros: "29",
        shortage_micros: "29",
        owed_micros: "4200000",
      },
    },
    insufficient_balance: {
      message: "This call can cost up to $0.000029, but the balance is $0.000028. Top up the account, or lower max_tokens.",
      metadata: {
        balance_micros: "28",
        held_micros: "0",
        available_micros: "28",
        required_micros: "29",
        shortage_micros: "1",
      },
    },
    ...limitErrors(),
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
    address_not_allowed: {
      message: "The API key cannot be used from the address 198.51.100.9.",
      metadata: { address: "198.51.100.9" },
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
export function errorExample(reason: Reason, model: ErrorModel): unknown {
  return exampleOf(errorBody, reason, model);
}

/** The same in Anthropic's API. */
export function anthropicErrorExample(reason: Reason, model: ErrorModel): unknown {
  return exampleOf(anthropicErrorBody, reason, model);
}

function exampleOf(bodyOf: typeof errorBody, reason: Reason, model: ErrorModel): unknown {
  return JSON.parse(bodyOf(new DomainError(reason, factsOf(model)[reason]), REQUEST_ID));
}

function streamExample({ events, response }: OperationExample): string {
  if (events) return eventsText(events);
  return eventText(JSON.stringify(response), undefined, (response as { readonly id: string }).id);
}

/** A streamed response, byte for byte. The formats whose events have a type name them after it. */
function eventsText(events: readonly unknown[]): string {
  const names = events.map(typeOf);
  const lines = events.map((event, i) => `${nameLine(names[i])}data: ${JSON.stringify(event)}\n\n`);
  return lines.join("") + (names[0] === undefined ? "data: [DONE]\n\n" : "");
}

function typeOf(event: unknown): string | undefined {
  return (event as { readonly type?: string }).type;
}

function nameLine(name: string | undefined): string {
  return name === undefined ? "" : `event: ${name}\n`;
}
