import type { Reason } from "../../../domain/errors.ts";
import type { Model } from "../../../domain/model.ts";
import type { ExampleModels } from "../../../models/example-model.ts";
import { anthropicErrorExample, errorExample } from "./error-examples.ts";
import { eventsText, operationExamples } from "./examples.ts";
import type { OperationExample } from "./operation-example.ts";
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

/** The prefix of the examples in the form of Anthropic's API. */
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
