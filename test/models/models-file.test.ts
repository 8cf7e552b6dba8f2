import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { maxCostOf, tokenPrices } from "../../src/domain/price.ts";
import { BUILT_IN_MODELS } from "../../src/models/built-in.ts";
import { parseModels } from "../../src/models/models-file.ts";
import { ModelsError } from "../../src/models/problems.ts";
import { readModels } from "../../src/models/read-models.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const SECRET = "sk-canary-of-the-upstream";
const env = { UPSTREAM_KEY: SECRET, BROKEN_KEY: `${SECRET}\n${SECRET}`, EMPTY_KEY: " " };

/** One model with changed fields. An empty value removes the field. */
function yaml(changes: Record<string, string> = {}): string {
  const fields: Record<string, string> = {
    id: "acme-1",
    context_window: "8192",
    max_output_tokens: "4096",
    input_micros_per_million_tokens: "250000",
    output_micros_per_million_tokens: "1250000",
    upstream: "{kind: sandbox}",
    ...changes,
  };
  const lines = Object.entries(fields).filter(([, value]) => value !== "");
  return `models:\n${lines.map(([name, value], at) => `  ${at === 0 ? "-" : " "} ${name}: ${value}`).join("\n")}\n`;
}

function mistakes(text: string): string[] {
  try {
    parseModels(text, "models.yaml", env);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelsError);
    return (error as Error).message.split("\n");
  }
  return [];
}

/** The prices of a tier. */
const ratesOf = (input: bigint, output: bigint) => {
  const { tiers: _, ...rates } = tokenPrices(input, output);
  return rates;
};

test("a file with every field is parsed", () => {
  const text = `
models:
  - id: acme-1
    owned_by: acme
    created: 1763683200
    context_window: 8192
    max_output_tokens: 8192
    default_output_tokens: 1000
    prompt_overhead_tokens: {base: 0}
    image_tokens: 1000
    max_messages: 2000
    aliases: [acme, acme/latest]
    capabilities: [tools, images]
    extra_fields: [top_k, chat_template_kwargs]
    prices: {input: 1, cached_input: 2, cache_write: 3, cache_write_1h: 8, output: 4, reasoning: 5, image: 6, request: 7, tiers: [{above_input_tokens: 4096, input: 9, output: 10}, {above_input_tokens: 8000, input: 11, cached_input: 12, cache_write: 13, output: 14, reasoning: 15, image: 0}]}
    upstreams:
      - {kind: openai, base_url: "https://api.example.com/v1", api_key_env: UPSTREAM_KEY, model: big, timeout_ms: 5000, weight: 3}
      - {kind: anthropic, base_url: "http://127.0.0.1:9000", model: other}
  - id: meta/llama-3:free
    context_window: 1
    max_output_tokens: 1
    input_micros_per_million_tokens: 1
    output_micros_per_million_tokens: 1
    upstream: {kind: sandbox, delay_ms: 5}
`;
  expect(parseModels(text, "models.yaml", env)).toEqual([
    {
      id: "acme-1",
      ownedBy: "acme",
      priceVersion: 0,
      priceListVersion: 0,
      createdSeconds: 1_763_683_200,
      contextWindow: 8_192,
      maxOutputTokens: 8_192,
      defaultOutputTokens: 1_000,
      promptOverheadTokens: { base: 0, perMessage: 16 },
      aliases: ["acme", "acme/latest"],
      imageTokens: 1_000,
      maxMessages: 2_000,
      capabilities: ["tools", "images"],
      extraFields: ["top_k", "chat_template_kwargs"],
      prices: {
        ...{ input: 1n, cachedInput: 2n, cacheWrite: 3n, cacheWrite1h: 8n, output: 4n, reasoning: 5n, image: 6n, request: 7n },
        tiers: [
          { aboveInputTokens: 4_096, ...ratesOf(9n, 10n), image: 6n, request: 7n },
          {
            aboveInputTokens: 8_000,
            ...{ ...ratesOf(11n, 14n), cachedInput: 12n, cacheWrite: 13n, cacheWrite1h: 13n, reasoning: 15n, request: 7n },
          },
        ],
      },
      upstreams: [
        {
          ...{ kind: "openai", baseUrl: "https://api.example.com/v1", model: "big" },
          ...{ apiKeyEnv: "UPSTREAM_KEY", timeoutMs: 5_000, weight: 3 },
        },
        { kind: "anthropic", baseUrl: "http://127.0.0.1:9000", apiKeyEnv: undefined, model: "other", timeoutMs: 60_000 },
      ],
    },
    {
      id: "meta/llama-3:free",
      ownedBy: "vx",
      priceVersion: 0,
      priceListVersion: 0,
      createdSeconds: 0,
      contextWindow: 1,
      maxOutputTokens: 1,
      defaultOutputTokens: 1,
      promptOverheadTokens: { base: 64, perMessage: 16 },
      aliases: [],
      imageTokens: 4_096,
      maxMessages: 200,
      capabilities: [],
      extraFields: [],
      prices: tokenPrices(1n, 1n),
      upstreams: [{ kind: "sandbox", delayMs: 5 }],
    },
  ]);
});

/** One model with the prices of this group. */
const priced = (prices: string) => yaml({ input_micros_per_million_tokens: "", output_micros_per_million_tokens: "", prices });

test("omitted prices default to those of input and output, or to 0", () => {
  expect(parseModels(priced("{input: 3, output: 5}"), "models.yaml", env)[0]?.prices).toEqual(tokenPrices(3n, 5n));
});

test("a call whose every limit and price is at its maximum costs less than 2^53 micros", () => {
  const max = "1000000000000";
  const prices = ["input", "output", "image", "request"].map((name) => `${name}: ${max}`).join(", ");
  const [model] = parseModels(
    yaml({
      context_window: "100000000",
      max_output_tokens: "50000000",
      image_tokens: "100000",
      max_messages: "2000",
      prompt_overhead_tokens: "{base: 10000, per_message: 1000}",
      input_micros_per_million_tokens: "",
      output_micros_per_million_tokens: "",
      prices: `{${prices}}`,
    }),
    "models.yaml",
    env,
  );
  if (!model) throw new Error("no model");
  const { base, perMessage } = model.promptOverheadTokens;
  const outputTokens = model.maxOutputTokens;
  const images = 100;
  const inputTokens = model.contextWindow - outputTokens + images * model.imageTokens + base + perMessage * model.maxMessages;
  expect(maxCostOf(model.prices, { inputTokens, outputTokens, images })).toBeLessThan(220_000_000_000_000n);
});

const openai = (more: string) => `{kind: openai, base_url: "https://x.example", model: m${more}}`;

const [IN, OUT] = ["input_micros_per_million_tokens", "output_micros_per_million_tokens"];

describe("a mistake is reported with its line and its field", () => {
  test.each<[Record<string, string>, RegExp]>([
    [{ id: "" }, /^models.yaml:2: models\[0\]\.id: is missing$/],
    [{ id: "7" }, /^models.yaml:2: models\[0\]\.id: must be a text$/],
    [{ id: "a b" }, /^models.yaml:2: models\[0\]\.id: must consist of letters/],
    [{ id: "a/../b" }, /^models.yaml:2: models\[0\]\.id: /],
    [{ id: "a".repeat(129) }, /^models.yaml:2: models\[0\]\.id: must have at most 128 characters$/],
    [{ default_output_tokens: "100000000" }, /default_output_tokens: must not be more than max_output_tokens$/],
    [{ prompt_overhead_tokens: "{per_message: 1001}" }, /models\[0\]\.prompt_overhead_tokens\.per_message: /],
    [{ context_window: "" }, /^models.yaml:2: models\[0\]\.context_window: is missing$/],
    [{ context_window: "100000001" }, /^models.yaml:3: models\[0\]\.context_window: must be at most 100000000$/],
    [{ context_window: "large" }, /^models.yaml:3: models\[0\]\.context_window: must be a whole number$/],
    [{ max_output_tokens: "0" }, /^models.yaml:4: models\[0\]\.max_output_tokens: must be at least 1$/],
    [{ max_output_tokens: "8193" }, /^models.yaml:4: models\[0\]\.max_output_tokens: must not be more than context_window$/],
    [{ [IN]: "-1" }, /^models.yaml:5: .*input_micros/],
    [{ [OUT]: "0.5" }, /^models.yaml:6: .*output_micros.*: must be a whole number$/],
    [{ [OUT]: "1000000000001" }, /^models.yaml:6: .*output_micros/],
    [{ [IN]: '"1"' }, /^models.yaml:5: .*input_micros/],
    [
      { prices: "{input: 1, output: 1}", [OUT]: "" },
      /^models.yaml:5: .*input_micros_per_million_tokens: must not be given together with "prices"$/,
    ],
    [{ [IN]: "", [OUT]: "" }, /^models.yaml:2: models\[0\]\.prices: is missing$/],
    [{ [OUT]: "" }, /^models.yaml:2: models\[0\]\.output_micros_per_million_tokens: is missing$/],
    [{ [IN]: "", [OUT]: "", prices: "{input: 1, output: 1, audio: 1}" }, /prices\.audio: is not a known field$/],
    [{ max_messages: "2001" }, /max_messages: must be at most 2000$/],
    [{ image_tokens: "0" }, /image_tokens: must be at least 1$/],
    [{ capabilities: "[tools, flight]" }, /capabilities\[1\]: must be "tools" or/],
    [{ capabilities: "[tools, tools]" }, /capabilities: must not repeat an entry$/],
    [
      { capabilities: "[embeddings]", upstream: '{kind: anthropic, base_url: "https://x.example", model: m}' },
      /capabilities: must not have "embeddings" with an upstream that is not sandbox or openai$/,
    ],
    [{ extra_fields: "[top_k, stream]" }, /extra_fields\[1\]: is a field that/],
    [{ extra_fields: "[n]" }, /extra_fields\[0\]: is a field that/],
    [{ extra_fields: "[__proto__]" }, /extra_fields\[0\]: must be the name of a field$/],
    [{ upstream: "{kind: sandbox, weight: 0}" }, /upstream\.weight: must be at least 1$/],
    [{ aliases: "[acme-1]" }, /aliases\[0\]: "acme-1" is used twice$/],
    [{ aliases: '["a b"]' }, /aliases\[0\]: must consist of letters/],
    [{ colour: "red" }, /^models.yaml:8: models\[0\]\.colour: is not a known field$/],
    [{ upstream: "" }, /^models.yaml:2: models\[0\]\.upstream: is missing/],
    [{ upstreams: "[{kind: sandbox}]" }, /^models.yaml:8: models\[0\]\.upstreams: must not be given together with "upstream"$/],
    [{ upstream: "", upstreams: "[]" }, /^models.yaml:7: models\[0\]\.upstreams: /],
    [
      { upstream: "{kind: magic}" },
      /^models.yaml:7: models\[0\]\.upstream\.kind: must be one of "sandbox", "openai", "openai-responses", "anthropic"$/,
    ],
    [{ upstream: "{}" }, /^models.yaml:7: models\[0\]\.upstream\.kind: is missing$/],
    [{ upstream: "{kind: sandbox, model: x}" }, /upstream\.model: is not a known field$/],
    [{ upstream: "{kind: openai, model: m}" }, /upstream\.base_url: is missing$/],
    [{ upstream: '{kind: openai, base_url: "file:///etc", model: m}' }, /base_url: must begin/],
    [
      { upstream: `{kind: openai, base_url: "https://u:${SECRET}@x.example", model: m}` },
      /base_url: must not contain credentials/,
    ],
    [{ upstream: "{kind: openai, base_url: x, model: m}" }, /base_url: is not a valid URL$/],
    [{ upstream: openai(", timeout_ms: 0") }, /upstream\.timeout_ms: /],
    [{ upstream: openai(", timeout_ms: 600001") }, /upstream\.timeout_ms: /],
    [
      { upstream: openai(", api_key_env: NO_SUCH_KEY") },
      /^models.yaml:7: models\[0\]\.upstream\.api_key_env: the environment variable NO_SUCH_KEY is not set$/,
    ],
    [{ upstream: openai(", api_key_env: EMPTY_KEY") }, /EMPTY_KEY is not set$/],
    [{ upstream: openai(", api_key_env: BROKEN_KEY") }, /BROKEN_KEY contains characters/],
    [
      { upstream: "", upstreams: `[{kind: sandbox}, ${openai(", api_key_env: NO_SUCH_KEY")}]` },
      /^models.yaml:7: models\[0\]\.upstreams\[1\]\.api_key_env: /,
    ],
    [
      { upstream: openai(", api_key_file: /nonesuch") },
      /^models.yaml:7: models\[0\]\.upstream\.api_key_file: \/nonesuch cannot be read: no such file/,
    ],
    [{ upstream: openai(", api_key_file: /dev/zero") }, /is larger than 8192 bytes$/],
    [{ upstream: openai(", api_key_file: /dev/null") }, /\/dev\/null is empty$/],
    [
      { upstream: openai(", api_key_env: BROKEN_KEY, api_key_file: /nonesuch") },
      /upstream\.api_key_file: must not be given together with "api_key_env"$/,
    ],
    [{ upstream: openai(`, api_key_env: ${SECRET}`) }, /api_key_env: must be the name/],
  ])("%j", (changes, expected) => {
    const lines = mistakes(yaml(changes));
    expect(lines).toEqual([expect.stringMatching(expected)]);
    expect(lines.join()).not.toContain(SECRET);
  });

  test("the same id twice", () => {
    const twice = yaml() + yaml().replace("models:\n", "");
    expect(mistakes(twice)).toEqual(['models.yaml:8: models[1].id: "acme-1" is used twice']);
  });

  test("an alias of another model", () => {
    const other = yaml({ id: "acme-2", aliases: "[acme-1]" }).replace("models:\n", "");
    expect(mistakes(yaml() + other)).toEqual(['models.yaml:14: models[1].aliases[0]: "acme-1" is used twice']);
  });

  test("several mistakes, one per line", () => {
    expect(mistakes(yaml({ id: "", max_output_tokens: "0", colour: "red" }))).toHaveLength(3);
    const many = mistakes(yaml(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`x${i}`, "1"]))));
    expect(many).toHaveLength(21);
    expect(many.at(-1)).toBe("… and 30 more");
  });

  test.each([
    ["", /^models.yaml:1: models: is missing$/],
    ["models: []", /^models.yaml:1: models: must have at least 1 entry$/],
    ["models: 7", /^models.yaml:1: models: must be a list$/],
    ["- 1", /^models.yaml:1: must be a group of fields$/],
    ["models:\n  - {id: a\n", /^models.yaml:\d: /],
    ["models: []\nmodels: []", /^models.yaml:2: .*unique/],
    ["models: []\n---\nmodels: []", /^models.yaml:\d: .*multiple documents/],
    [yaml({ colour: "red" }).replaceAll("\n", "\r\n"), /^models.yaml:8: /],
    [`a: &a [x]\nb: &b [${"*a,".repeat(600)}]\nc: [${"*b,".repeat(600)}]`, /^models.yaml: .*alias/],
  ])("%.30j", (text, expected) => {
    expect(mistakes(text)[0]).toMatch(expected);
  });
});

describe("the file", () => {
  const folder = createTemporaryFolder("models");
  const file = (content: string | Buffer) => {
    const path = join(folder.path, "models.yaml");
    writeFileSync(path, content);
    return path;
  };

  test("without a file, the built-in models are used", async () => {
    expect(await readModels(undefined, env)).toBe(BUILT_IN_MODELS);
    expect(BUILT_IN_MODELS.map(({ id, contextWindow }) => [id, contextWindow])).toEqual([
      ["vx-sandbox-small", 8_192],
      ["vx-sandbox-large", 128_000],
      ["vx-sandbox-embed", 8_192],
    ]);
    expect(await readModels(file(yaml()), env)).toHaveLength(1);
  });

  test.each([
    [
      "that does not exist",
      () => join(folder.path, "none.yaml"),
      /^VX_MODELS: .*none\.yaml cannot be read: no such file or directory \(ENOENT\)$/,
    ],
    ["that is a folder", () => folder.path, /^VX_MODELS: \S+ cannot be read: illegal operation on a directory \(EISDIR\)$/],
    ["that is too large", () => file("#".repeat(131_073)), /is larger than 131072 bytes$/],
    ["that is endless", () => "/dev/zero", /is larger than 131072 bytes$/],
    ["that is not UTF-8", () => file(Buffer.from([0x23, 0xff])), /^VX_MODELS: \S+ is not UTF-8 text$/],
  ])("%s is reported in one line", async (_, path, expected) => {
    await expect(readModels(path(), env)).rejects.toThrow(expected);
  });
});
