import { describe, expect, test } from "vitest";
import type { Model } from "../../src/domain/model.ts";
import { BUILT_IN_MODELS } from "../../src/models/built-in.ts";
import { openApiPage } from "../../src/server/pages/openapi-page.ts";
import { PRODUCT } from "../support/product.ts";

type Operation = {
  readonly summary: string;
  readonly description: string;
  readonly requestBody?: {
    readonly content: {
      readonly "application/json": { readonly example?: Body; readonly examples?: Examples };
    };
  };
};
type Body = { readonly model?: string };
type Examples = Readonly<Record<string, { readonly summary?: string; readonly value: Body }>>;
type Document = {
  readonly tags: readonly { readonly name: string; readonly "x-displayName": string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

async function documentOf(models: readonly Model[]): Promise<Document> {
  return JSON.parse(await openApiPage(models, PRODUCT)) as Document;
}

const [BASE] = BUILT_IN_MODELS as [Model];
const remote = { kind: "anthropic", baseUrl: "https://m.example", apiKeyEnv: undefined, model: "m", timeoutMs: 1 } as const;
const PLAIN: Model = { ...BASE, id: "plain", capabilities: [], upstreams: [remote] };
const TOOLS: Model = { ...BASE, id: "tools", capabilities: ["tools"], prices: { ...BASE.prices, input: 9_000_000n } };
const VECTORS: Model = { ...BASE, id: "vectors", capabilities: ["embeddings"], prices: { ...BASE.prices, input: 1n } };

/** The models in the examples of an operation. */
function modelsIn({ requestBody }: Operation): unknown[] {
  const { example, examples = {} } = requestBody?.content["application/json"] ?? {};
  return [example, ...Object.values(examples).map(({ value }) => value)].flatMap((body) => body?.model ?? []);
}

describe("the examples of the document", () => {
  test("use the cheapest model with what they need", async () => {
    const { paths } = await documentOf([TOOLS, PLAIN, VECTORS]);
    const used = Object.fromEntries(
      Object.entries(paths).flatMap(([path, { post }]) => {
        const models = post ? modelsIn(post) : [];
        return models.length > 0 ? [[path, models]] : [];
      }),
    );
    expect(used).toEqual({
      "/v1/generate": ["plain", "tools"],
      "/v1/generate:quote": ["plain"],
      "/v1/chat/completions": ["plain"],
      "/v1/responses": ["plain"],
      "/v1/messages": ["plain"],
      "/v1/messages/count_tokens": ["plain"],
      "/v1/embed": ["vectors"],
      "/v1/embeddings": ["vectors"],
      "/v1/completions": ["tools"],
    });
    expect(JSON.stringify(paths)).not.toContain("No model of this server");
  });

  test("say that no model of the server has the capability", async () => {
    const { paths } = await documentOf([PLAIN]);
    const embed = paths["/v1/embed"]?.post as Operation;
    expect(modelsIn(embed)).toEqual(["EMBEDDING_MODEL"]);
    expect(embed.description).toContain("No model of this server has the capability `embeddings`");
    expect(paths["/v1/completions"]?.post?.description).toContain("No model of this server completes texts");
    const generate = paths["/v1/generate"]?.post as Operation;
    expect(generate.description).not.toContain("No model");
    const examples = generate.requestBody?.content["application/json"].examples ?? {};
    expect(examples["With a tool"]?.summary).toBe("With a tool (supported by no model of this server)");
  });

  test("name no sandbox model on a server that only creates embeddings", async () => {
    const { paths } = await documentOf([VECTORS]);
    expect(JSON.stringify(paths)).not.toContain("sandbox");
    expect(paths["/v1/generate"]?.post?.description).toContain("No model of this server generates text");
  });
});

test("the operations are sorted by importance and have short names that differ", async () => {
  const { tags, paths } = await documentOf(BUILT_IN_MODELS);
  // biome-ignore format: a few lines
  expect(tags.map((tag) => tag["x-displayName"])).toEqual([
    "Generate", "Chat completions (OpenAI)", "Responses (OpenAI)", "Messages (Anthropic)", "Embeddings", "Embeddings (OpenAI)",
    "Completions (OpenAI)", "Models", "Models (Anthropic)", "Account status", "Account", "Keys", "Limits", "Ledger", "Usage",
    "Statements", "Failed calls", "Payments", "Events", "Webhook settings",
  ]);
  const names = Object.values(paths).flatMap((verbs) => Object.values(verbs).map(({ summary }) => summary));
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[A-Z]\w+( \w+){1,3}$/);
});
