import { create, type DescMessage, type DescService, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import { DomainError } from "../domain/errors.ts";
import { checkCollectedFields } from "./collected-fields.ts";
import { maxItemsOf, tooMany } from "./list-limits.ts";
import { withoutLongTexts } from "./long-texts.ts";
import { plainViolation } from "./plain-violation.ts";
import { refuseKeys } from "./refuse-keys.ts";

const validator = createValidator();

/** Keeps the error readable and within the size limit of gRPC trailers. */
const MAX_VIOLATIONS = 16;
const MAX_FIELD_CHARACTERS = 100;
const MAX_DESCRIPTION_CHARACTERS = 200;

/**
 * Compiles the rules of every request at start, so that an invalid rule stops the start and the first call
 * does not wait.
 */
export function prepareValidation(services: readonly DescService[]): void {
  for (const { input } of services.flatMap(({ methods }) => methods)) {
    const { kind, error } = validator.validate(input, create(input));
    if (kind === "error") throw error;
  }
}

/** Checks a request against the rules of its .proto. The 400 error names the invalid fields. */
export function validateRequest(desc: DescMessage, message: Message): void {
  if (desc.fields.length === 0) return;
  checkListLengths(desc, message);
  refuseKeys(desc, message);
  checkCollectedFields(desc, message);
  const result = validator.validate(desc, withoutLongTexts(desc, message));
  if (result.kind === "valid") return;
  if (result.kind === "error") throw result.error;
  const fields = result.violations.slice(0, MAX_VIOLATIONS).map((violation) => ({
    field: shortened(pathToString(violation.field), MAX_FIELD_CHARACTERS),
    description: shortened(plainViolation(violation.message), MAX_DESCRIPTION_CHARACTERS),
  }));
  const more = result.violations.length - fields.length;
  const words = fields.map(({ field, description }) => `${field}: ${description}`);
  if (more > 0) words.push(`and ${more} more`);
  throw new DomainError("invalid_argument", { message: words.join("; "), fields });
}

function shortened(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)}…`;
}

function checkListLengths(desc: DescMessage, message: Message): void {
  for (const field of desc.fields) {
    if (field.fieldKind !== "list") continue;
    const max = maxItemsOf(field);
    const { length } = (message as unknown as Record<string, unknown[]>)[field.localName] ?? [];
    if (length > max) throw DomainError.ofField(field.name, tooMany(max));
  }
}
