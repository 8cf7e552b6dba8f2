// The export of millions of usage sums by `vx usage export`: lines per second, and the memory of the command and of the
// server, compared with an export of a tenth of them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import postgres from "postgres";
import { laneOfId } from "../../src/domain/lane.ts";
import { loginIn } from "../../test/support/embedded.ts";
import type { Checkout } from "../checkout.ts";
import { type Part, Unavailable } from "../part.ts";
import { createPayers, type Payer } from "../payers.ts";
import { residentMib } from "../program.ts";
import { type Server, startServer } from "../server.ts";

const BYTES_PER_SUM = 300;
const ACCOUNTS = 100;
const KEYS = 10;
const QUARTER_MS = 900_000;
const START = Date.UTC(2026, 0);
const SAMPLE_MS = 50;

type Export = { linesPerSecond: number; commandMib: number; serverMib: number };

export function usageExport(rows: number): Part<{ tenth: Export; whole: Export; focus: Export }> {
  const quarters = Math.floor(rows / ACCOUNTS / KEYS);
  return {
    rounds: 1,
    warmUpRounds: 0,
    open: async (checkout, cleanup) => {
      const { bavail, bsize } = statfsSync(tmpdir());
      const neededBytes = rows * BYTES_PER_SUM * 1.5;
      if (bavail * bsize < neededBytes) throw new Unavailable(`${tmpdir()} needs ${neededBytes} free bytes`);
      const server = await startServer(checkout, cleanup);
      await fillUsage(server, await createPayers(server, ACCOUNTS), quarters);
      const measured = (format: string, share: number) => () =>
        runExport(checkout, server, { format, quarters: Math.floor(quarters * share) });
      return { tenth: measured("csv", 0.1), whole: measured("csv", 1), focus: measured("focus", 1) };
    },
    figures: [
      { name: `CSV export of ${rows.toLocaleString("en")} usage sums`, unit: "/s", value: (r) => r.whole.linesPerSecond },
      { name: "  largest resident memory of the command", unit: "MiB", value: (r) => r.whole.commandMib },
      { name: "  ÷ that for a tenth of the sums", unit: "×", max: 1.2, value: (r) => r.whole.commandMib / r.tenth.commandMib },
      { name: "  largest resident memory of the server", unit: "MiB", value: (r) => r.whole.serverMib },
      { name: "  ÷ that for a tenth of the sums", unit: "×", max: 1.2, value: (r) => r.whole.serverMib / r.tenth.serverMib },
      { name: "FOCUS export of the same sums, lines", unit: "/s", value: (r) => r.focus.linesPerSecond },
      { name: "  largest resident memory of the command", unit: "MiB", value: (r) => r.focus.commandMib },
      { name: "  largest resident memory of the server", unit: "MiB", value: (r) => r.focus.serverMib },
    ],
  };
}

/** Ten keys of each account used the model in every quarter of an hour. */
async function fillUsage(server: Server, payers: readonly Payer[], quarters: number): Promise<void> {
  const owner = postgres({ ...loginIn(server.dataDir), max: 1, onnotice: () => undefined });
  for (const { accountId } of payers) {
    await owner`
      INSERT INTO vx.usage_quarters
      SELECT ${laneOfId(accountId)}, ${accountId}, ${START / QUARTER_MS} + q, 'key_01jd000000000000000000000' || k,
        'vx-sandbox-small', '', 1, 9, 63, 0, 0, 225, 0, 0, 0, 297
      FROM generate_series(0, ${quarters - 1}::int) q, generate_series(1, ${KEYS}::int) k`;
  }
  await owner`VACUUM ANALYZE vx.usage_quarters`;
  await owner`CHECKPOINT`;
  await owner.end();
}

async function runExport(
  checkout: Checkout,
  server: Server,
  { format, quarters }: { format: string; quarters: number },
): Promise<Export> {
  const timeAt = (quarter: number) => new Date(START + quarter * QUARTER_MS).toISOString();
  const range = ["--from", timeAt(0), "--to", timeAt(quarters)];
  const command = spawn(process.execPath, ["src/vx.js", "usage", "export", "--format", format, ...range], {
    cwd: checkout.folder,
    env: { ...process.env, ...server.operatorEnv },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const startedAt = performance.now();
  const exited = once(command, "exit");
  let [lines, commandMib, serverMib, sampledAt] = [0, 0, 0, 0];
  for await (const chunk of command.stdout as AsyncIterable<Buffer>) {
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++;
    if (performance.now() - sampledAt < SAMPLE_MS || command.exitCode !== null) continue;
    sampledAt = performance.now();
    // A process that is ending has no memory.
    commandMib = Math.max(commandMib, residentMib(command.pid ?? 0) || 0);
    serverMib = Math.max(serverMib, residentMib(server.pid));
  }
  const [status] = await exited;
  if (status !== 0) throw new Error(`vx usage export ended with ${status}`);
  return { linesPerSecond: (lines / (performance.now() - startedAt)) * 1_000, commandMib, serverMib };
}
