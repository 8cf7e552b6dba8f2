import { create, type DescMessage, type DescService, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { DomainError } from "../domain/errors.ts";
import { maxItemsOf, tooMany } from "../policy/list-limits.ts";
import { refuseKeys } from "./refuse-keys.ts";

const validator = createValidator();

export const validate: Interceptor = (next) => async (request) => {
  if (!request.stream) {
    validateRequest(request.method.input, request.message);
    return await next(request);
  }
  return await next({ ...request, message: validated(request.method.input, request.message) });
};

/** Compiles the rules of every request now: a wrong one stops the start, and no first caller waits for it. */
export function prepareValidation(services: readonly DescService[]): void {
  for (const { input } of services.flatMap(({ methods }) => methods)) {
    const { kind, error } = validator.validate(input, create(input));
    if (kind === "error") throw error;
  }
}

/** Checks a request against the rules of its .proto; a 400 names every field that breaks one. */
export function validateRequest(desc: DescMessage, message: Message): void {
  if (desc.fields.length === 0) return;
  checkListLengths(desc, message);
  refuseKeys(desc, message);
  const result = validator.validate(desc, message);
  if (result.kind === "valid") return;
  if (result.kind === "error") throw result.error;
  const fields = result.violations.map((violation) => ({
    field: pathToString(violation.field),
    description: violation.message,
  }));
  throw new DomainError("invalid_argument", {
    message: fields.map(({ field, description }) => `${field}: ${description}`).join("; "),
    fields,
  });
}

function checkListLengths(desc: DescMessage, message: Message): void {
  for (const field of desc.fields) {
    if (field.fieldKind !== "list") continue;
    const max = maxItemsOf(field);
    const { length } = (message as unknown as Record<string, unknown[]>)[field.localName] ?? [];
    if (length > max) throw DomainError.ofField(field.name, tooMany(max));
  }
}

async function* validated<M extends Message>(
  desc: DescMessage,
  messages: AsyncIterable<M>,
): AsyncIterable<M> {
  for await (const message of messages) {
    validateRequest(desc, message);
    yield message;
  }
}
