import { readFile } from "node:fs/promises";
import { DomainError, type DomainErrorOptions, type Reason } from "../../../domain/errors.ts";
import type { Model } from "../../../domain/model.ts";
import { type ExampleModels, exampleModels } from "../../../models/built-in.ts";
import { anthropicErrorBody, errorBody } from "../../errors/http-error.ts";
import type { Render } from "../rendered.ts";
import type { Product } from "../site-header.ts";
import { eventsText, operationExamples, REQUEST_ID } from "./examples.ts";
import type { OperationExample } from "./operation-example.ts";

const FILE = new URL("../../../../gen/openapi.json", import.meta.url);

/** The committed document with the product's name, the address of this server and its models in the examples. */
export async function openApiPage(models: readonly Model[], product: Product): Promise<Render> {
  const committed = JSON.parse(await readFile(FILE, "utf8")) as Schema;
  const { info, servers, ...others } = insertExamples(committed, exampleModels(models));
  const contact =
    product.supportUrl === undefined ? {} : { contact: { name: "Support", url: product.supportUrl } };
  const named = {
    openapi: others.openapi,
    info: { ...(info as Schema), title: product.name, ...contact },
    ...others,
  };
  const [server] = servers as readonly Schema[];
  // Serialized once: only the servers differ between clients.
  const open = JSON.stringify(named, null, 2).slice(0, -"\n}".length);
  return (url) => `${open},\n  "servers": ${JSON.stringify([{ ...server, url }])}\n}\n`;
}

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

/** The document with examples that use the models. Existing examples are replaced. */
export function insertExamples(document: Schema, models: ExampleModels): Schema {
  const { paths, components, ...others } = document as OpenApi;
  const examples = operationExamples(models);
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
        value: errorValue(name, models.generation.model),
      })),
    },
  };
}

/** The prefix of the examples in the format of Anthropic's API. */
const ANTHROPIC = "anthropic_";

function errorValue(name: string, model: Model): unknown {
  return name.startsWith(ANTHROPIC)
    ? anthropicErrorExample(name.slice(ANTHROPIC.length) as Reason, model)
    : errorExample(name as Reason, model);
}

function insertExample(operation: Operation, example: OperationExample): Operation {
  const { description, parameters, requestBody, responses } = operation;
  const { more = {} } = example;
  const values = { ...example.path, ...example.query };
  const content = {
    "application/json": withMore(
      example.response,
      mapValues(more, ({ response }) => response),
    ),
    "text/event-stream": { example: eventsText(example.events ?? []) },
  };
  const success = responses["200"] as Operation["responses"][string];
  return {
    ...operation,
    ...(example.missing && { description: `${description}\n\n${example.missing}` }),
    ...(parameters && {
      parameters: parameters.map((one) => clean({ ...one, example: values[one.name] }) as typeof one),
    }),
    ...(requestBody && {
      requestBody: {
        ...requestBody,
        content: insert(requestBody.content, {
          "application/json": withMore(
            example.body,
            mapValues(more, ({ body }) => body),
          ),
        }),
      },
    }),
    responses: { ...responses, "200": { ...success, content: insert(success.content, content) } },
  };
}

/** A media type has either one example or several with titles. */
function withMore(example: unknown, more: Readonly<Record<string, unknown>>): Schema {
  if (Object.keys(more).length === 0) return { example };
  return { examples: mapValues({ Simple: example, ...more }, (value) => ({ value })) };
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
      metadata: {
        balance_micros: "28",
        held_micros: "0",
        available_micros: "28",
        required_micros: "29",
        shortage_micros: "1",
      },
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

/** Part of a JSON Schema. */
export type Schema = { readonly [keyword: string]: unknown };

/** Removes the keywords without a value. */
export function clean(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
