// Replies of a model server through the runner, compared with the same requests over bare undici.
import { Pool } from "undici";
import { Connections } from "../src/upstreams/http/connection-pool.ts";
import { openUpstream } from "../src/upstreams/open-upstream.ts";
import { Progress } from "../src/upstreams/runner/progress.ts";
import { RUNNER_LIMITS, Runner } from "../src/upstreams/runner/runner.ts";
import { type Figure, hammer, median, startProgram } from "./support.ts";

const CALLERS = 64;
const ROUNDS = 5;
const SECONDS = 2;
const WARM_UP_SECONDS = 1;

export async function upstreams(): Promise<Figure[]> {
  const server = startProgram(["bench/upstream-server.ts"], {});
  const url = await server.next(/ready on (\S+)/);
  const bare = startBare(url);
  const runner = await startRunner(`${url}/v1`);
  const figures: Record<"bare" | "runner", number[]> = { bare: [], runner: [] };
  for (const arm of [bare, runner]) await hammer(CALLERS, WARM_UP_SECONDS, arm.call);
  // Alternate the rounds, so that other load on the machine affects both.
  for (let round = 0; round < ROUNDS; round++) {
    figures.bare.push((await hammer(CALLERS, SECONDS, bare.call)).perSecond);
    figures.runner.push((await hammer(CALLERS, SECONDS, runner.call)).perSecond);
  }
  await bare.close();
  await runner.close();
  await server.stop();
  const [bareMedian, runnerMedian] = [median(figures.bare), median(figures.runner)];
  return [
    { name: "bare undici, 64 callers", value: bareMedian, unit: "/s" },
    { name: "through the runner, 64 callers", value: runnerMedian, unit: "/s" },
    { name: "runner ÷ bare undici", value: runnerMedian / bareMedian, unit: "×", atLeast: 0.5 },
  ];
}

const PROMPT = {
  messages: [{ role: "user" as const, content: "Say hello." }],
  maxTokens: 100,
  temperature: undefined,
  stop: [],
};

function startBare(url: string) {
  const pool = new Pool(url);
  const body = JSON.stringify({ model: "m", messages: PROMPT.messages, max_tokens: 100, stream: true });
  const headers = { "content-type": "application/json" };
  return {
    call: async () => {
      const response = await pool.request({ path: "/v1/chat/completions", method: "POST", headers, body });
      await response.body.text();
    },
    close: () => pool.close(),
  };
}

async function startRunner(baseUrl: string) {
  const connections = new Connections();
  const runner = new Runner({
    limits: RUNNER_LIMITS,
    open: (settings) =>
      openUpstream(settings, {
        connections,
        env: {},
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
    inputMicrosPerMillionTokens: 1n,
    outputMicrosPerMillionTokens: 1n,
    upstreams: [{ kind: "openai" as const, baseUrl, apiKeyEnv: undefined, model: "m", timeoutMs: 30_000 }],
  };
  await runner.use([model]);
  return {
    call: async () => {
      const { signal } = new AbortController();
      const of = { accountId: "acct_1", requestId: "req_1", progress: new Progress() };
      for await (const { kind } of runner.run({ model, prompt: PROMPT, signal, ...of })) {
        if (kind === "done") return;
      }
    },
    close: () => runner.close(),
  };
}
