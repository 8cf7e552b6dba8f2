import assert from "node:assert/strict";
import { z } from "zod";

export const BASE_URL = `${process.env.VX_URL}/v1`;
export const MODEL = "vx-sandbox-small";
export const EMBEDDING_MODEL = "vx-sandbox-embed";
export const REPLY = /^This is a reply of the sandbox\./;

/** A directive makes the sandbox call the tool. */
export const CALL_WEATHER = "[[tool=weather]] What is the weather in Paris?";

export const WEATHER = {
  name: "weather",
  description: "The weather of a city.",
  schema: z.object({ city: z.string().min(3), days: z.number().int().min(2).max(5) }),
} as const;

export const EVENT = z.object({
  title: z.string(),
  kind: z.enum(["talk", "workshop"]),
  seats: z.number().int().positive(),
  speakers: z.array(z.object({ name: z.string(), email: z.string() })),
});

export function keyOf(name: "VX_KEY" | "VX_BROKE_KEY" | "VX_NO_KEY" | "VX_LIMITED_KEY"): string {
  const key = process.env[name];
  assert(key, `${name} must be set`);
  return key;
}

/** Checks that the vector has this length, and the norm 1. */
export function assertUnitVector(vector: readonly number[] | undefined, length: number): void {
  assert.equal(vector?.length, length);
  const norm = Math.hypot(...(vector ?? []));
  assert(Math.abs(norm - 1) < 1e-3, `the norm is ${norm}`);
}

/** The error that a call throws; a call that succeeds is a failure. */
export async function errorOf(call: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return assert.fail("the call succeeded");
}

/** The error of the first call that exceeds one request per minute; a minute may end between the calls. */
export async function errorOfThird(call: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await call();
    await call();
  } catch (error) {
    return error;
  }
  return errorOf(call);
}
