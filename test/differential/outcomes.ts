import type { DescMethod } from "@bufbuild/protobuf";
import { policyOf } from "../../src/rules/policy.ts";
import type { Random } from "../fuzz/random.ts";
import { acceptEncoding, CHANGES } from "./changes.ts";
import { type Draft, type Form, setHeader } from "./draft.ts";
import type { Prompt } from "./messages.ts";
import { MAX_BODY_BYTES, REFUSED, SANDBOX, type Tenant } from "./twins.ts";

/** A call that is made to end in a certain way. */
export type Outcome = {
  readonly name: string;
  /** "scoped": those that require a scope and count against the rate limit. */
  readonly methods: "all" | "scoped" | "generations" | "streams" | readonly string[];
  readonly prompt?: Partial<Prompt>;
  /** The prompt of a second call. The second call is otherwise the same. */
  readonly secondPrompt?: Partial<Prompt>;
  readonly secret?: (tenant: Tenant, method: DescMethod) => string;
  readonly change?: (draft: Draft, random: Random) => void;
  readonly usesUpWindows?: boolean;
};

const GENERATIONS = /^(Stream)?Generate$/;

export function hasOutcome({ methods }: Outcome, method: DescMethod): boolean {
  if (methods === "all") return true;
  if (methods === "scoped") return policyOf(method).scope !== undefined && policyOf(method).rateLimited;
  if (methods === "streams") return method.methodKind === "server_streaming";
  if (methods === "generations") return GENERATIONS.test(method.name);
  return methods.includes(method.name);
}

const said = (text: string, rest: Partial<Prompt> = {}): Partial<Prompt> => ({ text, ...rest });
const authorization =
  (...values: string[]) =>
  (draft: Draft) => {
    draft.headers = draft.headers.filter(([name]) => name !== "authorization");
    for (const value of values) draft.headers.push(["authorization", value]);
  };
const timeout = (grpc: string, connect: string) => (draft: Draft) =>
  draft.form.protocol === "connect" ? setHeader(draft, "connect-timeout-ms", connect) : setHeader(draft, "grpc-timeout", grpc);
const idempotency = (key: string) => (draft: Draft) => setHeader(draft, "idempotency-key", key);
const newIdempotencyKey = (draft: Draft, random: Random) => setHeader(draft, "idempotency-key", String(random.next()));

const LARGE_REPLY = said("[[tokens=5000]]", { maxTokens: 5_000 });
const FAILURE = said("[[tokens=40 fail_after=8]]");

export const OUTCOMES: readonly Outcome[] = [
  { name: "success", methods: "all" },
  { name: "no key", methods: "all", change: authorization() },
  { name: "a malformed key", methods: "all", change: authorization("Bearer vx_live_x") },
  { name: "another scheme", methods: "all", change: authorization("Basic eDp5") },
  { name: "two keys", methods: "all", change: authorization("Bearer a", "Bearer b") },
  {
    name: "a key in another header",
    methods: "all",
    change: (draft) => {
      authorization()(draft);
      draft.headers.push(["x-api-key", "x"]);
    },
  },
  { name: "a revoked key", methods: "all", secret: ({ revoked }) => revoked },
  { name: "an expired key", methods: "all", secret: ({ expired }) => expired.secret },
  {
    name: "a key without the scope",
    methods: "scoped",
    secret: ({ readOnly, generateOnly }, method) => (policyOf(method).scope === "read" ? generateOnly : readOnly),
  },
  { name: "a used up window", methods: "scoped", secret: ({ limited }) => limited.secret, usesUpWindows: true },
  { name: "a key of an account without balance", methods: "generations", secret: ({ poor }) => poor },
  { name: "an account with the maximum number of keys", methods: ["CreateKey"], secret: ({ capped }) => capped },
  { name: "an unknown model", methods: "generations", prompt: { model: "no-such-model" } },
  { name: "an invalid field", methods: "generations", prompt: { maxTokens: -1 } },
  { name: "a prompt that is too long for the model", methods: "generations", prompt: said("word ".repeat(16_000)) },
  {
    name: "an announced body that is too large",
    methods: "all",
    change: (draft) => {
      draft.frames = [{ flags: 0, payload: Buffer.alloc(MAX_BODY_BYTES + 10) }];
    },
  },
  {
    name: "a body that is too large",
    methods: "all",
    change: (draft) => {
      draft.frames = [{ flags: 0, payload: Buffer.alloc(MAX_BODY_BYTES + 10) }];
      draft.framing = "unknown";
    },
  },
  {
    name: "an unfinished body without a key",
    methods: "all",
    change: (draft) => {
      authorization()(draft);
      draft.framing = "open";
    },
  },
  { name: "another content type", methods: "all", change: (draft) => setHeader(draft, "content-type", "text/plain") },
  {
    name: "an unknown method",
    methods: "all",
    change: (draft) => {
      draft.target = draft.target.replace(/\w+(?=$|\?)/, "NoSuchMethod");
    },
  },
  { name: "two messages", methods: "all", change: (draft, random) => CHANGES.twoMessages?.(draft, random) },
  { name: "a deadline that is over", methods: "all", change: timeout("0m", "0") },
  {
    name: "a deadline during the first piece",
    methods: "generations",
    prompt: said("[[delay_ms=10000]]"),
    secret: ({ hurried }) => hurried,
    // So long that a slow machine reads and admits the call before.
    change: timeout("2S", "2000"),
  },
  { name: "a deadline that is kept", methods: "all", change: timeout("100S", "100000") },
  { name: "an upstream that refuses", methods: "generations", prompt: { model: REFUSED } },
  { name: "an upstream that fails before the first piece", methods: "generations", prompt: said("[[fail_after=0]]") },
  { name: "an upstream that fails after some pieces", methods: "generations", prompt: FAILURE },
  { name: "a reply larger than the buffers", methods: "generations", prompt: LARGE_REPLY },
  {
    name: "a reply larger than the buffers, compressed",
    methods: ["Generate"],
    prompt: LARGE_REPLY,
    change: (draft) => acceptEncoding(draft, "gzip"),
  },
  { name: "an empty reply", methods: "generations", prompt: said("[[tokens=0]]") },
  { name: "reasoning", methods: "generations", prompt: said("[[reasoning=20]]") },
  { name: "a long reply", methods: "generations", prompt: said("[[tokens=600]]", { maxTokens: 2_000 }) },
  { name: "a replay", methods: "generations", secondPrompt: {}, change: newIdempotencyKey },
  {
    name: "an idempotency key of another request",
    methods: "generations",
    secondPrompt: said("[[tokens=3]]"),
    change: newIdempotencyKey,
  },
  { name: "a replay of a failure", methods: "streams", prompt: FAILURE, secondPrompt: FAILURE, change: newIdempotencyKey },
  { name: "an invalid idempotency key", methods: "generations", change: idempotency("") },
  { name: "a compressed request", methods: "all", change: (draft, random) => CHANGES.compressed?.(draft, random) },
  {
    name: "an accepted compression",
    methods: "all",
    prompt: said("[[tokens=600]]", { maxTokens: 2_000 }),
    change: (draft, random) => CHANGES.acceptEncoding?.(draft, random),
  },
];

/** How often each form ended in each way, for the check that a run reached what it should. */
export function labelOf({ protocol, isJson }: Form, ending: string): string {
  return `${protocol} ${isJson ? "json" : "binary"}: ${ending}`;
}

export const DEFAULT_PROMPT: Prompt = { model: SANDBOX, text: "What is a ledger?", maxTokens: 60 };
