// The largest allowed message, in its longest encoding, through the whole server: how long it delays other
// calls, and how much memory many of them take at once.
import { join } from "node:path";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline, watchMemory } from "../program.ts";
import { createRemoteModels } from "../remote-models.ts";
import { startServer } from "../server.ts";

const CHARACTERS = 400_000;
const AT_ONCE = 64;
const PAUSES = join(import.meta.dirname, "..", "programs", "pauses.ts");
const CONTENT = "\\ud83d\\ude00".repeat(CHARACTERS);
const BODY = `{"model":"bench","max_tokens":100,"messages":[{"role":"user","content":"${CONTENT}"}]}`;

type One = { tookMs: number; pauseMs: number };
type Many = { pauseMs: number; maxMib: number };

export const bigBody: Part<{ one: One; many: Many }> = {
  rounds: 5,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const upstream = await startBaseline(cleanup, "upstream-server");
    const env = { VX_MODELS: createRemoteModels(cleanup, { bench: upstream }) };
    const server = await startServer(checkout, cleanup, { env, preload: [PAUSES] });
    const [payer] = await createPayers(server, 1);
    const send = async () => {
      const response = await fetch(`${server.url}/v1/generate`, {
        method: "POST",
        headers: { authorization: `Bearer ${payer?.secret}`, "content-type": "application/json" },
        body: BODY,
      });
      const text = await response.text();
      if (response.status !== 200) throw new Error(text);
    };
    const longestPauseMs = async () => {
      process.kill(server.pid, "SIGUSR2");
      return Number(await server.next(/^longest pause (\S+) ms/));
    };
    const one = async () => {
      const startedAt = performance.now();
      await send();
      return { tookMs: performance.now() - startedAt, pauseMs: await longestPauseMs() };
    };
    const many = async () => {
      const memory = watchMemory(server.pid);
      await Promise.all(Array.from({ length: AT_ONCE }, send));
      return { maxMib: memory.stop(), pauseMs: await longestPauseMs() };
    };
    return { one, many };
  },
  figures: [
    { name: `a body of ${(BODY.length / 1e6).toFixed(1)} MB, answered in`, unit: "ms", value: (r) => r.one.tookMs },
    { name: "  longest pause of the event loop", unit: "ms", value: (r) => r.one.pauseMs },
    { name: `  the same, ${AT_ONCE} of them at once`, unit: "ms", value: (r) => r.many.pauseMs },
    { name: `  resident memory, ${AT_ONCE} of them at once`, unit: "MiB", value: (r) => r.many.maxMib },
    { name: "  pause / time of one body", unit: "×", max: 0.8, value: (r) => r.one.pauseMs / r.one.tookMs },
  ],
};
