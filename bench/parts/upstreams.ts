// Replies of a model server through the runner, compared with the same requests over bare undici.
import { Pool } from "undici";
import { tokenPrices } from "../../src/domain/price.ts";
import type { Checkout } from "../checkout.ts";
import { type Load, runCallers } from "../load.ts";
import type { Part } from "../part.ts";
import { startBaseline } from "../program.ts";

const CALLERS = 64;
const SECONDS = 2;

export const upstreams: Part<{ runner: Load }, { bare: Load }> = {
  rounds: 7,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const call = await openRunner(checkout, cleanup);
    return { runner: () => runCallers(CALLERS, SECONDS, call) };
  },
  openBaselines: async (cleanup) => {
    const pool = new Pool(await startBaseline(cleanup, "upstream-server"));
    cleanup.defer(() => pool.close());
    return { bare: () => runCallers(CALLERS, SECONDS, () => callBare(pool)) };
  },
  figures: [
    { name: `bare undici, ${CALLERS} callers`, unit: "/s", value: (r) => r.bare.perSecond },
    { name: `through the runner, ${CALLERS} callers`, unit: "/s", value: (r) => r.runner.perSecond },
    { name: "runner / bare undici", unit: "×", min: 0.3, value: (r) => r.runner.perSecond / r.bare.perSecond },
  ],
};

const PROMPT = {
  messages: [{ role: "user" as const, content: "Say hello." }],
  maxTokens: 100,
  temperature: undefined,
  stop: [],
  options: {},
  traits: { capabilities: [], extraFields: [] },
  streamed: true,
};

const BARE_REQUEST = {
  path: "/v1/chat/completions",
  method: "POST" as const,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ model: "m", messages: PROMPT.messages, max_tokens: 100, stream: true }),
};

async function callBare(pool: Pool): Promise<void> {
  const response = await pool.request(BARE_REQUEST);
  await response.body.text();
}

async function openRunner(checkout: Checkout, cleanup: AsyncDisposableStack) {
  const { Connections } = await checkout.load<typeof import("../../src/upstreams/http/connection-pool.ts")>(
    "src/upstreams/http/connection-pool.ts",
  );
  const { openUpstream } =
    await checkout.load<typeof import("../../src/upstreams/open-upstream.ts")>("src/upstreams/open-upstream.ts");
  const { Progress } = await checkout.load<typeof import("../../src/upstreams/upstream.ts")>("src/upstreams/upstream.ts");
  const { Runner, RUNNER_LIMITS } =
    await checkout.load<typeof import("../../src/upstreams/runner/runner.ts")>("src/upstreams/runner/runner.ts");
  const baseUrl = `${await startBaseline(cleanup, "upstream-server")}/v1`;
  const connections = new Connections();
  const runner = new Runner({
    limits: RUNNER_LIMITS,
    open: (settings) =>
      openUpstream(settings, {
        connections,
        env: {},
        loadFirstTokens: async () => (text) => ({ text, tokens: 0 }),
        openSandbox: () => {
          throw new Error("no sandbox here");
        },
      }),
    now: () => performance.now(),
    random: Math.random,
    sleep: () => Promise.resolve(),
    onReport: () => undefined,
  });
  const model = {
    id: "m",
    ownedBy: "bench",
    createdSeconds: 0,
    contextWindow: 1_000,
    maxOutputTokens: 100,
    defaultOutputTokens: 100,
    promptOverheadTokens: { base: 0, perMessage: 0 },
    aliases: [],
    imageTokens: 0,
    maxMessages: 200,
    capabilities: [],
    extraFields: [],
    prices: tokenPrices(1n, 1n),
    priceVersion: 1,
    priceListVersion: 0,
    upstreams: [{ kind: "openai" as const, baseUrl, apiKeyEnv: undefined, model: "m", timeoutMs: 30_000 }],
  };
  await runner.use([model]);
  cleanup.defer(() => runner.close());
  return async () => {
    const { signal } = new AbortController();
    const of = { accountId: "acct_1", requestId: "req_1", trace: undefined, idempotencyKey: undefined, progress: new Progress() };
    for await (const { kind } of runner.streamEvents({ model, prompt: PROMPT, signal, ...of })) {
      if (kind === "done") return;
    }
  };
}
