import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { RemoteKind } from "../../../src/domain/model.ts";
import { anthropicRequest } from "./anthropic-schema.ts";
import { openaiResponsesRequest } from "./openai-responses-schema.ts";
import { openaiRequest } from "./openai-schema.ts";

const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true, allowUnionTypes: true });

const VALIDATORS: Readonly<Record<RemoteKind, ValidateFunction>> = {
  openai: ajv.compile(openaiRequest),
  "openai-responses": ajv.compile(openaiResponsesRequest),
  anthropic: ajv.compile(anthropicRequest),
};

/** The errors that a strict server of this kind reports for the body; empty for a valid body. */
export function requestProblems(kind: RemoteKind, body: unknown): string[] {
  const validate = VALIDATORS[kind];
  validate(body);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}
