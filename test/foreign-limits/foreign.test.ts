import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { startTestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { CLIENTS } from "../support/installed.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey } from "../support/openai.ts";
import { problemOf } from "../support/python.ts";

/** A program that shares no code with the server calls two servers, and counts as their upstream what limits must bound. */

const RUNNING = 20;
const TOKENS = 20_000;
/** Without waiting for the end of a minute. */
const [WINDOW, WINDOW_SECONDS, WINDOWS] =
  process.env.VX_TEST_SHORT === "1" ? (["hour", 3_600, 1] as const) : (["minute", 60, 2] as const);
const PROGRAM = `${CLIENTS}/limits`;

type Counts = {
  readonly MostRunning: number;
  readonly TokensBegun: Readonly<Record<string, number>>;
  readonly Calls: number;
  readonly Unexpected: Readonly<Record<number, string>>;
};

const problem = problemOf("go", "version") ?? problemOf("go", "build", "-C", "test/foreign-limits/go", "-o", PROGRAM, ".");
if (problem !== undefined) console.warn(`SKIPPED: limits as a Go program sees them: ${problem}`);

describe.skipIf(problem !== undefined)("200 goroutines against two servers", () => {
  test(`use a limit of running calls in full, at least 95 % of one of tokens per ${WINDOW}, and never more`, {
    timeout: 150_000,
  }, async () => {
    await using cleanup = new AsyncDisposableStack();
    const program = spawn(PROGRAM, { stdio: ["pipe", "pipe", "inherit"] });
    cleanup.defer(() => void program.kill());
    const lines = createInterface({ input: program.stdout as Readable })[Symbol.asyncIterator]();
    const nextLine = async () => String((await lines.next()).value);
    const models = createModelsFile(modelsJson(await nextLine()));
    cleanup.defer(models.remove);
    const env = { VX_MODELS: models.path };
    const first = await startTestApp({ env });
    cleanup.defer(first.stop);
    const second = await startTestApp({ env, database: first.database });
    cleanup.defer(second.stop);
    const spec = {
      URLs: [first.url, second.url],
      RunningLimit: RUNNING,
      Running: await createLimitedKey(first, { metric: "concurrent", window: "", amount: BigInt(RUNNING) }),
      Tokens: await createLimitedKey(first, { metric: "tokens", window: WINDOW, amount: BigInt(TOKENS) }),
      WindowSeconds: WINDOW_SECONDS,
      Windows: WINDOWS,
    };
    program.stdin.end(JSON.stringify(spec));
    const counts = JSON.parse(await nextLine()) as Counts;
    console.log(JSON.stringify(counts));
    expect(counts.Unexpected).toEqual({});
    expect(counts.MostRunning).toBe(RUNNING);
    const begun = Object.values(counts.TokensBegun);
    expect(Math.max(...begun)).toBeLessThanOrEqual(TOKENS);
    expect(Math.min(...begun)).toBeGreaterThanOrEqual(TOKENS * 0.95);
    expect(begun).toHaveLength(WINDOWS);
  });
});

async function createLimitedKey(
  app: Awaited<ReturnType<typeof startTestApp>>,
  limit: { metric: string; window: string; amount: bigint },
): Promise<string> {
  const operator = operatorOf(app);
  const key = await createPaidKey(operator);
  await operator.setKeyLimit({ keyId: key.id, rateLimitRpm: 1_000_000 });
  await operator.setLimit({ owner: { case: "keyId", value: key.id }, limit });
  return key.secret;
}

function modelsJson(baseUrl: string): string {
  const models = ["running", "tokens"].map((id) => ({
    id,
    context_window: 1_000,
    max_output_tokens: 100,
    input_micros_per_million_tokens: 1_000_000,
    output_micros_per_million_tokens: 1_000_000,
    upstream: { kind: "openai", base_url: baseUrl, model: id },
  }));
  return JSON.stringify({ models });
}
