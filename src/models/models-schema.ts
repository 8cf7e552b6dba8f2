import { z } from "zod";
import {
  CAPABILITIES,
  DEFAULT_IMAGE_TOKENS,
  DEFAULT_MAX_MESSAGES,
  DEFAULT_OUTPUT_TOKENS,
  DEFAULT_PROMPT_OVERHEAD,
  REMOTE_KINDS,
  TASK_KINDS,
  type UpstreamSettings,
} from "../domain/model.ts";
import { MAX_PRICE, MAX_TIERS, type Prices, type Rates, tokenPrices } from "../domain/price.ts";

/** The maximum cost of a call depends on these limits: see MAX_PRICE. */
const MAX_CONTEXT_WINDOW = 100_000_000;
const MAX_IMAGE_TOKENS = 100_000;
const MAX_MESSAGES = 2_000;
const MAX_OVERHEAD = { base: 10_000, perMessage: 1_000 };
const MAX_TIMEOUT_MS = 600_000;
const MAX_MODELS = 1_000;
const MAX_UPSTREAMS = 8;
const MAX_ALIASES = 20;
const MAX_WEIGHT = 1_000;

/** One path segment after percent-encoding; safe in a header and in a terminal. */
const id = z
  .string()
  .max(128)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*([:/][A-Za-z0-9][A-Za-z0-9._-]*)*$/,
    'must consist of letters, digits, ".", "_" and "-", in parts joined by ":" or "/"',
  );
const name = z
  .string()
  .min(1)
  .max(200)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this refuses them
  .regex(/^[^\x00-\x1f\x7f-\x9f]*$/, "must not contain control characters");
const tokens = z.int().min(1).max(MAX_CONTEXT_WINDOW);
const weight = z.int().min(1).max(MAX_WEIGHT).optional();

const baseUrl = z
  .string()
  .max(2_000)
  .superRefine((text, context) => {
    const problem = urlProblem(text);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  });

const price = z.int().min(0).max(Number(MAX_PRICE)).transform(BigInt);

const rateFields = {
  input: price,
  cached_input: price.optional(),
  cache_write: price.optional(),
  cache_write_1h: price.optional(),
  output: price,
  reasoning: price.optional(),
  image: price.optional(),
  request: price.optional(),
};

/** What is left out costs what its total costs; images and requests, what they cost without a bound. */
function ratesOf(values: z.output<z.ZodObject<typeof rateFields>>, units: Pick<Rates, "image" | "request">): Rates {
  const { input, output, cache_write: cacheWrite = input } = values;
  return {
    input,
    cachedInput: values.cached_input ?? input,
    cacheWrite,
    cacheWrite1h: values.cache_write_1h ?? cacheWrite,
    output,
    reasoning: values.reasoning ?? output,
    image: values.image ?? units.image,
    request: values.request ?? units.request,
  };
}

const tier = z.strictObject({ above_input_tokens: tokens, ...rateFields });

const prices = z
  .strictObject({ ...rateFields, tiers: z.array(tier).max(MAX_TIERS).default([]) })
  .superRefine(({ tiers }, context) => {
    for (const [i, { above_input_tokens: bound }] of tiers.entries()) {
      if (bound > (tiers[i - 1]?.above_input_tokens ?? 0)) continue;
      const path = ["tiers", i, "above_input_tokens"];
      context.addIssue({ code: "custom", path, message: "must be more than that of the tier before" });
    }
  })
  .transform(({ tiers, ...values }): Prices => {
    const rates = ratesOf(values, { image: 0n, request: 0n });
    return {
      ...rates,
      tiers: tiers.map(({ above_input_tokens: aboveInputTokens, ...tierValues }) => ({
        aboveInputTokens,
        ...ratesOf(tierValues, rates),
      })),
    };
  });

const sandbox = z
  .strictObject({
    kind: z.literal("sandbox"),
    delay_ms: z.int().min(0).max(10_000).default(0),
    weight,
    cost: prices.optional(),
  })
  .transform(({ delay_ms, ...values }) => ({ ...values, delayMs: delay_ms }));

const remote = z
  .strictObject({
    kind: z.enum(REMOTE_KINDS),
    base_url: baseUrl,
    api_key_env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "must be the name of an environment variable")
      .optional(),
    api_key_file: name.optional(),
    model: name,
    timeout_ms: z.int().min(100).max(MAX_TIMEOUT_MS).default(60_000),
    weight,
    cost: prices.optional(),
  })
  .refine(({ api_key_env, api_key_file }) => api_key_env === undefined || api_key_file === undefined, {
    path: ["api_key_file"],
    error: 'must not be given together with "api_key_env"',
  })
  .transform(({ base_url, api_key_env, api_key_file, timeout_ms, ...values }) => ({
    ...values,
    baseUrl: base_url,
    apiKeyEnv: api_key_env,
    apiKeyFile: api_key_file,
    timeoutMs: timeout_ms,
  }));

const KINDS = ["sandbox", ...REMOTE_KINDS].map((kind) => `"${kind}"`).join(", ");

const upstream = z.discriminatedUnion("kind", [sandbox, remote], {
  error: (issue) => (issue.code === "invalid_union" ? `must be one of ${KINDS}` : undefined),
});

const promptOverhead = z
  .strictObject({
    base: z.int().min(0).max(MAX_OVERHEAD.base).default(DEFAULT_PROMPT_OVERHEAD.base),
    per_message: z.int().min(0).max(MAX_OVERHEAD.perMessage).default(DEFAULT_PROMPT_OVERHEAD.perMessage),
  })
  .transform(({ base, per_message }) => ({ base, perMessage: per_message }));

/**
 * Fields of upstream requests that extra_fields must not name, because vx sets them, because they would change
 * which model or which text is charged, or because they refer to a state that vx does not know.
 */
const RESERVED = new Set([
  "background",
  "best_of",
  "conversation",
  "dimensions",
  "encoding_format",
  "frequency_penalty",
  "functions",
  "function_call",
  "include",
  "input",
  "instructions",
  "max_completion_tokens",
  "max_cost_micros",
  "max_output_tokens",
  "max_tokens",
  "messages",
  "model",
  "n",
  "output_config",
  "output_format",
  "parallel_tool_calls",
  "presence_penalty",
  "previous_response_id",
  "prompt",
  "reasoning",
  "reasoning_effort",
  "response_format",
  "seed",
  "stop",
  "stop_sequences",
  "store",
  "stream",
  "stream_options",
  "suffix",
  "system",
  "temperature",
  "text",
  "thinking",
  "tool_choice",
  "tools",
  "top_p",
  "user",
]);

const fieldName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/, "must be the name of a field")
  .refine((name) => !RESERVED.has(name), "is a field that vx sets or refuses");

const MAX_EXTRA_FIELDS = 50;

/** The fields of a request that upstreams get unchanged. */
const extraFields = z.array(fieldName).max(MAX_EXTRA_FIELDS).default([]);

/** The prices of a model: all of them in one group, or those of input and output in two fields. */
const priceFields = {
  prices: prices.optional(),
  input_micros_per_million_tokens: price.optional(),
  output_micros_per_million_tokens: price.optional(),
};

const model = z
  .strictObject({
    id,
    owned_by: name.default("vx"),
    created: z.int().min(0).max(253_402_300_799).default(0),
    context_window: tokens,
    max_output_tokens: tokens,
    default_output_tokens: tokens.optional(),
    prompt_overhead_tokens: promptOverhead.default(DEFAULT_PROMPT_OVERHEAD),
    image_tokens: z.int().min(1).max(MAX_IMAGE_TOKENS).default(DEFAULT_IMAGE_TOKENS),
    max_messages: z.int().min(1).max(MAX_MESSAGES).default(DEFAULT_MAX_MESSAGES),
    aliases: z.array(id).max(MAX_ALIASES).default([]),
    capabilities: z
      .array(z.enum(CAPABILITIES))
      .max(CAPABILITIES.length)
      .default([])
      .refine((list) => new Set(list).size === list.length, "must not repeat an entry"),
    extra_fields: extraFields,
    ...priceFields,
    upstream: upstream.optional(),
    upstreams: z.array(upstream).min(1).max(MAX_UPSTREAMS).optional(),
  })
  .superRefine((values, context) => {
    const wrong = (field: string, message: string) => context.addIssue({ code: "custom", path: [field], message });
    if (values.max_output_tokens > values.context_window) {
      wrong("max_output_tokens", "must not be more than context_window");
    }
    if ((values.default_output_tokens ?? 0) > values.max_output_tokens) {
      wrong("default_output_tokens", "must not be more than max_output_tokens");
    }
    checkPrices(values, wrong);
    if (values.upstream && values.upstreams) wrong("upstreams", 'must not be given together with "upstream"');
    if (!values.upstream && !values.upstreams) wrong("upstream", 'is missing; give "upstream" or "upstreams"');
    const createVectors = upstreamsOf(values).every(({ kind }) => TASK_KINDS.includes(kind));
    if (values.capabilities.includes("embeddings") && !createVectors) {
      wrong("capabilities", `must not have "embeddings" with an upstream that is not ${TASK_KINDS.join(" or ")}`);
    }
  })
  .transform((values) => ({
    id: values.id,
    ownedBy: values.owned_by,
    createdSeconds: values.created,
    contextWindow: values.context_window,
    maxOutputTokens: values.max_output_tokens,
    defaultOutputTokens: values.default_output_tokens ?? Math.min(DEFAULT_OUTPUT_TOKENS, values.max_output_tokens),
    promptOverheadTokens: values.prompt_overhead_tokens,
    imageTokens: values.image_tokens,
    maxMessages: values.max_messages,
    aliases: values.aliases,
    capabilities: values.capabilities,
    extraFields: values.extra_fields,
    prices: pricesOf(values),
    priceVersion: 0,
    priceListVersion: 0,
    upstreams: upstreamsOf(values),
  }));

type Upstreams = {
  readonly upstream?: UpstreamSettings | undefined;
  readonly upstreams?: readonly UpstreamSettings[] | undefined;
};

function upstreamsOf({ upstream, upstreams }: Upstreams): readonly UpstreamSettings[] {
  return upstreams ?? (upstream ? [upstream] : []);
}

/** The schema of models.yaml; parsing returns models. */
export const modelsSchema = z.strictObject({ models: z.array(model).min(1).max(MAX_MODELS) });

/** The schema of a file with the prices of a model, in a group "prices" or alone. */
export function pricesFileSchema(content: unknown): z.ZodType<Prices> {
  const isGroup = Object.hasOwn(Object(content), "prices");
  return isGroup ? z.strictObject({ prices }).transform((file) => file.prices) : prices;
}

function urlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "is not a valid URL";
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return "must begin with http:// or https://";
  if (url.username !== "" || url.password !== "")
    return "must not contain credentials; name the variable or the file with the key in api_key_env or api_key_file";
  if (url.search !== "" || url.hash !== "") return "must not have a query or a fragment";
  return undefined;
}

type PriceValues = z.output<z.ZodObject<typeof priceFields>>;

/** Reports prices that are missing or given in both ways. */
function checkPrices(values: PriceValues, wrong: (field: string, message: string) => void): void {
  const single = ["input_micros_per_million_tokens", "output_micros_per_million_tokens"] as const;
  const given = single.filter((field) => values[field] !== undefined);
  if (values.prices) {
    for (const field of given) wrong(field, 'must not be given together with "prices"');
  } else if (given.length === 0) {
    wrong("prices", "is missing");
  } else {
    for (const field of single) if (!given.includes(field)) wrong(field, "is missing");
  }
}

function pricesOf(values: PriceValues): Prices {
  const { input_micros_per_million_tokens: input = 0n, output_micros_per_million_tokens: output = 0n } = values;
  return values.prices ?? tokenPrices(input, output);
}
