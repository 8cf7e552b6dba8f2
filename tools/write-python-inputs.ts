// Writes the types of the requests of the Python client: keyword arguments that type checkers know, with literals for
// fields that take only some texts.
import { writeFileSync } from "node:fs";
import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { EmbedRequestSchema } from "../gen/vx/v1/embed_pb.js";
import { ListEventsRequestSchema, WatchEventsRequestSchema } from "../gen/vx/v1/event_pb.js";
import { GenerateRequestSchema } from "../gen/vx/v1/generate_pb.js";
import { CreateKeyRequestSchema, ListKeysRequestSchema, UpdateKeyRequestSchema } from "../gen/vx/v1/key_pb.js";
import { ListEntriesRequestSchema } from "../gen/vx/v1/ledger_pb.js";
import { ListModelsRequestSchema } from "../gen/vx/v1/model_pb.js";
import { GetUsageRequestSchema } from "../gen/vx/v1/usage_pb.js";
import {
  CreateWebhookRequestSchema,
  ListDeliveriesRequestSchema,
  RedeliverRequestSchema,
  UpdateWebhookRequestSchema,
} from "../gen/vx/v1/webhook_pb.js";

const REQUESTS: readonly DescMessage[] = [
  GenerateRequestSchema,
  EmbedRequestSchema,
  ListModelsRequestSchema,
  ListKeysRequestSchema,
  CreateKeyRequestSchema,
  UpdateKeyRequestSchema,
  ListEntriesRequestSchema,
  GetUsageRequestSchema,
  ListEventsRequestSchema,
  WatchEventsRequestSchema,
  CreateWebhookRequestSchema,
  UpdateWebhookRequestSchema,
  ListDeliveriesRequestSchema,
  RedeliverRequestSchema,
];

/** Types of Python in place of messages of Google. */
const WELL_KNOWN: Readonly<Record<string, string>> = {
  "google.protobuf.Struct": "Mapping[str, Any]",
  "google.protobuf.Timestamp": "datetime.datetime",
};

/** The methods of the client set them. */
const LEFT_OUT = ["stream", "update_mask"];

const classes = new Map<string, string>();
for (const request of REQUESTS) writeClass(request);
const texts = [...classes.values()].join("");
const used = [...new Set([...texts.matchAll(/(\w+)_pb2\./g)].map(([, file]) => file))].sort();

writeFileSync(
  "clients/python/src/vx/_inputs.py",
  `# Written by tools/write-python-inputs.ts.
"""The fields of requests. A field that is called \`from\` has the name \`from_\`."""

from __future__ import annotations

import datetime
from typing import Any, Literal, Mapping, Sequence, Union

from typing_extensions import Required, TypedDict

${used
  .map((file) => `from ._messages import ${file}_pb2\n`)
  .join("")
  .trimEnd()}
${texts}`,
);

function writeClass(message: DescMessage): string {
  const name = inputName(message);
  if (classes.has(name)) return name;
  // The order of definitions: those of fields first.
  const fields = message.fields.filter((one) => !LEFT_OUT.includes(one.name)).map(lineOf);
  classes.set(name, `\n\nclass ${name}(TypedDict, total=False):\n${fields.join("")}`);
  return name;
}

function inputName({ name }: DescMessage): string {
  return name.endsWith("Request") ? name.replace(/Request$/, "Input") : `${name}Input`;
}

function lineOf(field: DescField): string {
  const name = field.name === "from" ? "from_" : field.name;
  const type = field.fieldKind === "list" ? `Sequence[${typeOf(field)}]` : typeOf(field);
  return `    ${name}: ${isRequired(field) ? `Required[${type}]` : type}\n`;
}

function typeOf(field: DescField): string {
  if (field.message) {
    const { message } = field;
    const module = message.file.name.replace(/^vx\/v1\//, "");
    return WELL_KNOWN[message.typeName] ?? `Union[${writeClass(message)}, ${module}_pb2.${message.name}]`;
  }
  if (field.fieldKind === "enum" || field.fieldKind === "map") throw new Error(`no type for ${field}`);
  const texts = textsOf(field).filter((text) => text !== "");
  if (texts.length > 0) return `Literal[${texts.map((text) => `"${text}"`).join(", ")}]`;
  switch (field.scalar) {
    case ScalarType.STRING:
      return "str";
    case ScalarType.BYTES:
      return "bytes";
    case ScalarType.BOOL:
      return "bool";
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return "float";
    default:
      return "int";
  }
}

/** The only texts that the field takes, if it does not take any. */
function textsOf(field: DescField): readonly string[] {
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  return rules?.case === "string" ? rules.value.in : [];
}

/** Whether the server refuses a request without the field. */
function isRequired(field: DescField): boolean {
  const { type } = getOption(field, fieldRules);
  if (type.case === "repeated") return type.value.minItems > 0n;
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT || type.case !== "string") return false;
  return type.value.minLen > 0n || (type.value.in.length > 0 && !type.value.in.includes(""));
}
