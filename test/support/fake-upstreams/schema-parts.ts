/**
 * Parts of the schemas of request bodies. They have no null members: some servers refuse null, and no member needs
 * it. No object accepts a member that the format does not name.
 */
export type Schema = Readonly<Record<string, unknown>>;

export const text: Schema = { type: "string" };
export const flag: Schema = { type: "boolean" };
export const anyObject: Schema = { type: "object" };
export const count: Schema = { type: "integer", minimum: 1 };
export const share: Schema = { type: "number", minimum: 0, maximum: 1 };

export function object(properties: Record<string, Schema>, required: readonly string[]): Schema {
  return { type: "object", properties, required, additionalProperties: false };
}

export function list(items: Schema, minItems = 0): Schema {
  return { type: "array", items, minItems };
}

export function either(...of: readonly Schema[]): Schema {
  return { anyOf: of };
}

export function oneOf(...values: readonly string[]): Schema {
  return { enum: values };
}
