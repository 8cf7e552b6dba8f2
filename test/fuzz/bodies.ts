import { developerServices } from "../../src/server/services.ts";
import type { Random } from "./random.ts";

export type AnyBody = Buffer;

const NAMES = [
  ...new Set(developerServices.flatMap(({ methods }) => methods.flatMap(({ input }) => input.fields.map((f) => f.name)))),
  "role",
  "content",
  "type",
  "text",
  "include_usage",
  "maxTokens",
  "__proto__",
  "constructor",
  "toString",
  "",
];

/** Edge cases for parsers of JSON, numbers, timestamps and Unicode. */
const TEXTS = [
  '""',
  '"user"',
  '"vx-sandbox-small"',
  '"vx-sandbox-large"',
  '"text"',
  '[{"role":"user","content":"hi"}]',
  '"generate"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\\x"',
  '"\u0001"',
  '"\u{1f600}"',
  '"2099-01-01T00:00:00Z"',
  '"9999-12-31T23:59:60Z"',
  "0",
  "-0",
  "1",
  "1.5",
  "1e400",
  "-1e-400",
  "9007199254740993",
  "99999999999999999999999999",
  "01",
  "0x1",
  "NaN",
  "Infinity",
  "true",
  "false",
  "null",
  "tru",
  "{}",
  "[]",
  "[",
  "{",
  "]",
  "}",
  ",",
  ":",
  '"',
  "\\",
  "/**/",
  "\ufeff",
  "",
];

const GENERATIONS = [
  '{"model":"vx-sandbox-small","messages":[{"role":"user","content":"hi"}]}',
  '{"model":"vx-sandbox-small","messages":[{"role":"system","content":""},{"role":"user","content":"\\u00e9"}],"max_tokens":5,"temperature":0.5,"stop":["a"]}',
  '{"model":"vx-sandbox-large","messages":[{"role":"user","content":"[[tokens=40]] 🎉"}],"stream":true}',
];

const CHATS = [
  '{"model":"vx-sandbox-small","messages":[{"role":"developer","content":"x"},{"role":"user","content":[{"type":"text","text":"hi"}]}],"max_completion_tokens":9}',
  '{"model":"vx-sandbox-large","messages":[{"role":"user","content":"hi"}],"stop":"a","n":1,"stream":true,"stream_options":{"include_usage":true}}',
  '{"model":"vx-sandbox-small","messages":[{"role":"user","content":"hi"}],"tools":[],"user":"someone","metadata":{"a":"b"},"stop":null}',
];

const KEYS = ['{"name":"fuzz","scopes":["read"],"rate_limit_rpm":5,"expires_at":"2099-01-01T00:00:00Z"}', '{"name":"fuzz"}'];

/** Bodies that are valid for one method each. */
const VALID = new Map([
  ["/v1/generate", GENERATIONS],
  ["/v1/chat/completions", CHATS],
  ["/v1/keys", KEYS],
]);
const ALL_VALID = [...GENERATIONS, ...CHATS, ...KEYS, "{}"];

export function anyBody(random: Random, path: string): AnyBody {
  const kind = random.next();
  const valid = random.chance(0.9) ? (VALID.get(path) ?? ALL_VALID) : ALL_VALID;
  if (kind < 0.25) return Buffer.from(random.pick(valid));
  if (kind < 0.55) return mutate(random, Buffer.from(random.pick(valid)));
  if (kind < 0.9) return Buffer.from(anyJson(random, 4));
  if (kind < 0.95) return Buffer.from(random.list(200, () => random.below(256)));
  if (kind < 0.98)
    return Buffer.from(random.pick(["[", '{"a":', '{"messages":[', "\\", "9", " ", '"']).repeat(random.below(20_000)));
  return Buffer.alloc(0);
}

function anyJson(random: Random, depth: number): string {
  const kind = random.next();
  if (depth === 0 || kind < 0.3) return random.pick(TEXTS);
  if (kind < 0.5) return `[${random.list(5, () => anyJson(random, depth - 1)).join(",")}]`;
  return `{${random.list(6, () => `${JSON.stringify(random.pick(NAMES))}:${anyJson(random, depth - 1)}`).join(",")}}`;
}

/** Flips, removes, doubles or replaces some bytes. */
export function mutate(random: Random, bytes: Buffer): Buffer {
  let changed = bytes;
  for (let i = 1 + random.below(3); i > 0; i--) {
    const from = random.below(changed.length + 1);
    const to = Math.min(changed.length, from + random.below(8));
    const pieces = [
      () => Buffer.alloc(0),
      () => Buffer.from(random.pick(TEXTS)),
      () => Buffer.from([random.below(256)]),
      () => Buffer.concat([changed.subarray(from, to), changed.subarray(from, to)]),
      () => changed.subarray(0, random.below(changed.length + 1)),
    ];
    changed = Buffer.concat([changed.subarray(0, from), random.pick(pieces)(), changed.subarray(to)]);
  }
  return changed;
}
