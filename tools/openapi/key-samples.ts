import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ApiKeySchema } from "../../gen/vx/v1/key_pb.js";
import type { KeyProperties } from "../../src/keys/fields.ts";

type Texts = { readonly given: string; readonly other: string };

/** Values of a property of a key, as REST has them. The OpenAPI document shows `given`; test/keys/fields.test.ts sends all of them. */
export type KeySample = {
  readonly given: JsonValue;
  /** A key with `given` can be changed to it by itself. */
  readonly other: JsonValue;
  readonly invalid: JsonValue;
  /** What a key shows without a value, and the word for that in commands and logs. Undefined if every key has a value. */
  readonly cleared: { readonly shown: JsonValue; readonly word: string } | undefined;
  /** The values in commands and in logs, if they differ from the JSON, where commas join a list. */
  readonly words?: Texts;
  readonly logged?: Texts;
};

export const KEY_SAMPLES: { readonly [Name in keyof KeyProperties]-?: KeySample } = {
  name: { given: "billing-worker production", other: "billing-worker staging", invalid: "a\nb", cleared: undefined },
  scopes: { given: ["generate", "read"], other: ["read"], invalid: ["all"], cleared: undefined },
  rateLimitRpm: { given: 60, other: 59, invalid: 0, cleared: { shown: 6_000, word: "default" } },
  expiresAt: {
    given: "2100-11-02T00:00:00Z",
    other: "2100-11-01T00:00:00Z",
    invalid: "1999-11-01T00:00:00Z",
    cleared: { shown: null, word: "never" },
    logged: { given: "2100-11-02T00:00:00.000Z", other: "2100-11-01T00:00:00.000Z" },
  },
  models: {
    given: ["vx-sandbox-small", "vx-sandbox-large"],
    other: ["vx-sandbox-small"],
    invalid: ["no-such-model"],
    cleared: { shown: [], word: "all" },
  },
  allowedCidrs: {
    given: ["203.0.113.0/24", "2001:db8::/32"],
    other: ["203.0.113.7/32"],
    invalid: ["example.com"],
    cleared: { shown: [], word: "all" },
  },
  limits: {
    given: [{ metric: "tokens", window: "day", amount: 100_000 }],
    other: [{ metric: "tokens", window: "day", amount: 90_000 }],
    invalid: [{ metric: "words", window: "day", amount: 1 }],
    cleared: { shown: [], word: "none" },
    words: { given: "tokens/day=100000", other: "tokens/day=90000" },
    logged: { given: "tokens day: 100000", other: "tokens day: 90000" },
  },
};

/** The properties of a request that creates a key. */
export function givenToKey(): JsonObject {
  return Object.fromEntries(
    Object.entries(KEY_SAMPLES).map(([name, sample]) => [ApiKeySchema.field[name as keyof KeyProperties].name, sample.given]),
  );
}
