import { readFileSync } from "node:fs";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { EVENT_TYPES } from "../../src/events/types.ts";

type Post = {
  readonly operationId: string;
  readonly requestBody: {
    readonly content: {
      readonly "application/json": { readonly schema: object; readonly example: WebhookBody };
    };
  };
};
type Document = { readonly webhooks: Readonly<Record<string, { readonly post: Post }>>; readonly components: object };

/** What a webhook gets about an event. */
export type WebhookBody = { readonly [field: string]: unknown; readonly type: string; readonly data: JsonValue };

const { webhooks, components } = JSON.parse(readFileSync("gen/openapi.json", "utf8")) as Document;
const ajv = new Ajv2020({ strict: false, validateFormats: false });
const compiled = new Map<string, ValidateFunction>();

/** The webhooks of the OpenAPI document, by their types. */
export const describedWebhooks = new Map(Object.entries(webhooks).map(([type, { post }]) => [type, post]));

/** Fails if a body differs from the OpenAPI document, or its data from the message of its type. */
export function expectDescribed(body: WebhookBody): void {
  const { type, data } = body;
  const desc = EVENT_TYPES.get(type);
  if (!desc) throw new Error(`the event ${type} has no message`);
  fromJson(desc, data);
  const schema = describedWebhooks.get(type)?.requestBody.content["application/json"].schema;
  // References of the schema lead to the components of the document.
  const validate = compiled.get(type) ?? ajv.compile({ ...schema, components });
  compiled.set(type, validate);
  if (!validate(body)) throw new Error(`${type}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(body)}`);
}
