import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createTemporaryFolder } from "../../support/temporary-folder.ts";
import { readProbe } from "../probe-file.ts";
import type { RunServer } from "../server.ts";
import { Operator } from "../tenants.ts";
import { withArena } from "../torture.ts";
import { createCallers } from "./callers.ts";
import { EMBEDDINGS_MODEL } from "./large-requests.ts";
import type { Bursts } from "./send-bursts.ts";
import { Witness } from "./witness.ts";

const MAX_PEAK_MIB = 1_024;
const MAX_LATER_MIB = 400;
const LATER_MS = 60_000;
/** Limit for the caller beside the attack. */
const MAX_P99_MS = 50;
/** The limit of the chart's containers. */
const LIMIT_BYTES = 1_536 * 1_048_576;
const CONCURRENT = 48;
const ACCOUNTS = 20;
const LOWEST_PRIORITY = 19;

/**
 * Sends bursts of large requests with one key, then with the keys of twenty accounts, to a server of its own; prints what
 * it found. Returns whether the bounds held.
 */
export async function tortureMemory(seed: number, bursts: number): Promise<boolean> {
  const folder = createTemporaryFolder("hostile-memory");
  const upstream = startProgram("./upstream.ts");
  const [port] = (await once(upstream.stdout, "data")) as [Buffer];
  const models = join(folder.path, "models.yaml");
  await writeFile(models, modelsYaml(Number(port)));
  try {
    return await withArena({ servers: 1, env: { VX_MODELS: models } }, async ({ servers: [server] }) => {
      if (!server) return false;
      const operator = new Operator(() => `http://127.0.0.1:${server.adminPort}`);
      const [witness, ...secrets] = await createCallers(operator, 1 + ACCOUNTS);
      const limit = limitMemory(server.pid);
      console.log(
        limit
          ? "\nThe server runs in a cgroup of 1,536 MiB."
          : "\nNo cgroup could be created, so the server has no memory limit.",
      );
      console.log(
        "| bursts of large requests | answers | memory peak / later | longest work | others: calls | failed | p50 / p99 / max ms |",
      );
      console.log("|---|---|--:|--:|--:|--:|--:|");
      await loadEncoding(server, witness);
      const one = await attack(server, witness, { kind: "memory", secrets: secrets.slice(0, 1), seed, bursts });
      const many = await attack(server, witness, { kind: "memory", secrets, seed: seed + 1, bursts });
      const work = await attack(server, witness, { kind: "work", secrets: secrets.slice(0, 1), seed, bursts });
      await server.kill();
      limit?.remove();
      return one && many && work;
    });
  } finally {
    upstream.kill();
    folder.remove();
  }
}

/** Starts a program that stands for another machine: it uses a processor only when the server and its caller do not. */
function startProgram(path: string, ...args: string[]) {
  const program = spawn(process.execPath, [fileURLToPath(new URL(path, import.meta.url)), ...args], {
    stdio: ["ignore", "pipe", process.env.TORTURE_VERBOSE ? "inherit" : "ignore"],
  });
  setPriority(program.pid as number, LOWEST_PRIORITY);
  return program;
}

async function attack(
  server: RunServer,
  secret: string,
  { kind, secrets, seed, bursts }: Pick<Bursts, "kind" | "secrets" | "seed" | "bursts">,
): Promise<boolean> {
  const settings: Bursts = { url: server.url, kind, secrets, seed, bursts, concurrent: CONCURRENT };
  const from = performance.timeOrigin + performance.now();
  // The peak is counted from now on.
  writeFileSync(`/proc/${server.pid}/clear_refs`, "5");
  const witness = new Witness(server.url, secret);
  const sender = startProgram("./send-bursts.ts", JSON.stringify(settings));
  const answers = (await text(sender.stdout)).trim();
  const { calls, failed, p50Ms, p99Ms, maxMs } = await witness.stop();
  const probes = readProbe(server.probeText()).filter(({ at }) => at >= from);
  const workMs = Math.max(...probes.map((probe) => probe.workMs));
  const peak = server.isRunning ? memoryOf(server.pid, "VmHWM") : Number.NaN;
  await wait(LATER_MS);
  const later = server.isRunning ? memoryOf(server.pid, "VmRSS") : Number.NaN;
  const isSmall = peak < MAX_PEAK_MIB && later < MAX_LATER_MIB;
  const isFine = isSmall && failed === 0 && p99Ms <= MAX_P99_MS && answers !== "";
  const latencies = [p50Ms, p99Ms, maxMs].map((ms) => ms.toFixed(1)).join(" / ");
  console.log(
    `| ${kind}, ${bursts} × ${CONCURRENT}, keys: ${secrets.length}, seed ${seed} | ${answers} | ${peak} / ${later} MiB | ${workMs.toFixed(0)} ms | ${calls} | ${failed} | ${latencies} |${isFine ? "" : " MISSED"}`,
  );
  return isFine;
}

/** The first count of a short text loads the encoding, once. */
async function loadEncoding({ url }: RunServer, secret: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: "local", messages: [{ role: "user", content: "lorem ipsum" }] });
  const { status } = await fetch(`${url}/v1/generate:quote`, { method: "POST", headers, body });
  if (status !== 200) throw new Error(`the quote before the bursts got ${status}`);
}

function memoryOf(pid: number, field: "VmHWM" | "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1_024);
}

/** Moves a process to a cgroup with the memory limit; undefined if this user may not create one. */
function limitMemory(pid: number): { remove(): void } | undefined {
  const isV1 = existsSync("/sys/fs/cgroup/memory");
  const folder = `/sys/fs/cgroup/${isV1 ? "memory/" : ""}vx-hostile-${process.pid}`;
  try {
    mkdirSync(folder);
    writeFileSync(join(folder, isV1 ? "memory.limit_in_bytes" : "memory.max"), String(LIMIT_BYTES));
    writeFileSync(join(folder, "cgroup.procs"), String(pid));
    return { remove: () => rmdirSync(folder) };
  } catch {
    return undefined;
  }
}

/** Free models: one that answers here, one behind HTTP, and one that creates embeddings. */
function modelsYaml(port: number): string {
  const capabilities = "tools, images, json_schema";
  const models = {
    local: { capabilities, upstream: "{kind: sandbox}" },
    remote: { capabilities, upstream: `{kind: openai, base_url: "http://127.0.0.1:${port}/v1", model: m, timeout_ms: 5000}` },
    [EMBEDDINGS_MODEL]: { capabilities: "embeddings", upstream: "{kind: sandbox}" },
  };
  const yaml = Object.entries(models).map(
    ([id, { capabilities, upstream }]) => `  - id: ${id}
    context_window: 50000000
    max_output_tokens: 1000
    max_messages: 2000
    capabilities: [${capabilities}]
    prices: {input: 0, output: 0}
    upstream: ${upstream}
`,
  );
  return `models:\n${yaml.join("")}`;
}
