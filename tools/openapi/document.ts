import type { DescField, DescMessage, DescService } from "@bufbuild/protobuf";
import type { UnknownFields } from "../../src/codec/json/reader.ts";
import { surfaceOf } from "../../src/rules/policy.ts";
import type { ExampleValues } from "../../src/server/pages/openapi-page.ts";
import { isAtOrBelow, restSurfaceOf } from "../../src/server/rest/surfaces.ts";
import type { CommentOf } from "./comments.ts";
import {
  anthropicErrorSchema,
  documentedReasons,
  errorExampleNames,
  errorResponses,
  errorSchema,
  takesIdempotencyKey,
} from "./errors.ts";
import { answerHeaders, HEADERS } from "./headers.ts";
import { insertExamples } from "./insert-examples.ts";
import { type Operation, operationsOf } from "./operations.ts";
import { rulesOf } from "./rules.ts";
import { clean, type Schema } from "./schema.ts";
import { Schemas } from "./schemas.ts";
import { INTRODUCTION, operationText, summaryOf, tagTitle } from "./texts.ts";
import { webhooksOf } from "./webhooks.ts";

type DescribedService = { readonly service: DescService; readonly unknownFields: UnknownFields };

type DocumentOptions = {
  readonly services: readonly DescribedService[];
  readonly version: string;
  readonly commentOf: CommentOf;
  readonly exampleValues: ExampleValues;
};

/** Creates the OpenAPI document of the services from their descriptors, and adds examples. */
export function openApiDocument({ exampleValues, ...options }: DocumentOptions): Schema {
  return insertExamples(withoutExamples(options), exampleValues);
}

function withoutExamples({ services, version, commentOf }: Omit<DocumentOptions, "exampleValues">): Schema {
  const operations = operationsOf(services.map(({ service }) => service));
  const unknownFields = new Map(services.map((one) => [one.service, one.unknownFields]));
  const schemas = new Schemas(commentOf);
  const paths: Record<string, Record<string, Schema>> = {};
  for (const operation of operations) {
    const { path, verb } = operation.binding;
    paths[path] ??= {};
    paths[path][verb.toLowerCase()] = {
      operationId: operation.id,
      tags: [operation.service.name],
      ...secondAddress(operation),
      summary: summaryOf(operation, commentOf),
      description: operationText(operation, commentOf),
      ...parameters(operation, schemas, commentOf),
      ...requestBody(operation, schemas, unknownFields.get(operation.service) ?? "refuse"),
      responses: { "200": success(operation, schemas, commentOf), ...errorResponses(operation) },
    };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "vx",
      version,
      description: INTRODUCTION,
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The server that serves this document." }],
    security: [{ apiKey: [] }],
    tags: services
      .filter(({ service }) => operations.some((one) => one.service === service))
      .map(({ service }) => ({
        name: service.name,
        "x-displayName": tagTitle(service),
        description: commentOf(service),
      })),
    paths,
    webhooks: webhooksOf(schemas),
    components: {
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          bearerFormat: "vx_live_…",
          description:
            "An API key in the header `Authorization: Bearer <API_KEY>`. Do not use a key in code that runs in a browser.",
        },
      },
      headers: HEADERS,
      examples: Object.fromEntries(errorExampleNames(operations).map((name) => [name, {}])),
      schemas: {
        ...schemas.components,
        ErrorBody: errorSchema(documentedReasons(operations)),
        AnthropicErrorBody: anthropicErrorSchema(),
      },
    },
  };
}

/** Below the second address, the key can be in another header. */
function secondAddress({ basePath, binding }: Operation): Schema {
  if (basePath === "") return {};
  const description = "Also accepts the key in the header `x-api-key`.";
  if (isAtOrBelow(binding.path, basePath)) return { servers: [{ url: "/", description }] };
  return { servers: [{ url: "/" }, { url: basePath, description }] };
}

function parameters(operation: Operation, schemas: Schemas, commentOf: CommentOf): Schema {
  const describe = (field: DescField, where: "path" | "query") =>
    clean({
      name: field.name,
      in: where,
      description: commentOf(field) || undefined,
      required: where === "path" || !rulesOf(field).optional || undefined,
      schema: schemas.parameter(field),
    });
  const list = [
    ...operation.pathFields.map((field) => describe(field, "path")),
    ...operation.queryFields.map((field) => describe(field, "query")),
    ...(takesIdempotencyKey(operation) ? [IDEMPOTENCY_KEY] : []),
    ...(operation.binding.resumedBy ? [LAST_EVENT_ID] : []),
    ...(operation.withHeader ? [selectingHeader(operation.withHeader)] : []),
  ];
  return list.length > 0 ? { parameters: list } : {};
}

/** The other response is not a second schema of this one: generated clients would return a union to all callers. */
function selectingHeader({ name, method }: NonNullable<Operation["withHeader"]>): Schema {
  return {
    name,
    in: "header",
    description: `Calls with this header have the parameters and responses of \`${method.name}\`.`,
    schema: { type: "string" },
  };
}

const IDEMPOTENCY_KEY: Schema = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "A unique value that makes retries safe. For 24 hours, calls with the same value and the same request get the same response and are charged once. The same value with another path, another body or another value of `stream` gets a 422.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x20-\\x7e]+$" },
};

const LAST_EVENT_ID: Schema = {
  name: "Last-Event-ID",
  in: "header",
  description: "The id of the last event, as `EventSource` sends it. Takes precedence over `after`.",
  schema: { type: "string", maxLength: 64 },
};

function requestBody(operation: Operation, schemas: Schemas, unknown: UnknownFields): Schema {
  const { usual, bodyFields } = operation;
  if (bodyFields.length === 0) return {};
  const schema = schemas.body(usual.input, bodyFields, unknown);
  return {
    requestBody: {
      required: bodyFields.some((field) => !rulesOf(field).optional),
      content: { "application/json": { schema } },
    },
  };
}

/**
 * CSV is only in the description of its methods: with a second content type, generated clients take the type of the JSON
 * response for JSON or text.
 */
function success(operation: Operation, schemas: Schemas, commentOf: CommentOf): Schema {
  const { binding, usual, streamed } = operation;
  const { responseBody } = binding;
  const schema = responseBody ? schemas.responseField(responseBody) : schemas.response(usual.output);
  const isStream = usual.methodKind === "server_streaming";
  const stream = isStream ? watched(responseBody?.message ?? usual.output, schema) : events(streamed, schemas);
  return {
    description: commentOf(responseBody?.message ?? usual.output),
    headers: answerHeaders(operation, 200),
    content: {
      ...(isStream ? {} : { "application/json": { schema } }),
      ...(stream ? { "text/event-stream": stream } : {}),
    },
  };
}

function events(streamed: Operation["streamed"], schemas: Schemas): Schema | undefined {
  if (!streamed) return undefined;
  const { output, parent } = streamed.method;
  const { namesEvents, end } = restSurfaceOf(surfaceOf(parent));
  const name = namesEvents ? " `event:` is its `type`." : "";
  const last = end === "" ? "" : ` The last line is \`${end.trim()}\`.`;
  const text = `With \`"${streamed.by}": true\`. Each \`data:\` line is a ${output.name} in JSON.${name}${last}`;
  return eventStream(text, schemas.response(output));
}

function watched({ name }: DescMessage, schema: Schema): Schema {
  return eventStream(`Each \`data:\` line is an ${name} in JSON, and \`id:\` is its \`id\`.`, schema);
}

/** OpenAPI 3.1 has no keyword for the events of a stream; JSON Schema has one for the content of a string. */
function eventStream(description: string, contentSchema: Schema): Schema {
  return { schema: { type: "string", description, contentMediaType: "text/event-stream", contentSchema } };
}
