import type { Reason } from "../../../domain/errors.ts";
import type { Model } from "../../../domain/model.ts";
import { errorExample } from "./error-examples.ts";
import { eventsText, type OperationExample, operationExamples } from "./examples.ts";
import { clean, type Schema } from "./schema.ts";

export type ExampleModel = Model;

type Content = Readonly<Record<string, Schema>>;
type Operation = Schema & {
  readonly operationId: string;
  readonly parameters?: readonly (Schema & { readonly name: string })[];
  readonly requestBody?: Schema & { readonly content: Content };
  readonly responses: Readonly<Record<string, Schema & { readonly content: Content }>>;
};
type OpenApi = Schema & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Schema & { readonly examples: Readonly<Record<Reason, Schema>> };
};

/** The document with examples that use the model. Existing examples are replaced. */
export function insertExamples(document: Schema, model: Model): Schema {
  const { paths, components, ...others } = document as OpenApi;
  const examples = operationExamples(model);
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
      examples: mapValues(components.examples, (_, reason) => ({
        value: errorExample(reason as Reason, model),
      })),
    },
  };
}

function insertExample(operation: Operation, example: OperationExample): Operation {
  const { parameters, requestBody, responses } = operation;
  const values = { ...example.path, ...example.query };
  const content = {
    "application/json": example.response,
    "text/event-stream": eventsText(example.events ?? []),
  };
  const success = responses["200"] as Operation["responses"][string];
  return {
    ...operation,
    ...(parameters && {
      parameters: parameters.map((one) => clean({ ...one, example: values[one.name] }) as typeof one),
    }),
    ...(requestBody && {
      requestBody: {
        ...requestBody,
        content: insert(requestBody.content, { "application/json": example.body }),
      },
    }),
    responses: { ...responses, "200": { ...success, content: insert(success.content, content) } },
  };
}

function insert(content: Content, examples: Readonly<Record<string, unknown>>): Content {
  return mapValues(content, (media, type) => clean({ ...media, example: examples[type] }));
}

function mapValues<Value, Result>(
  object: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}
