// The largest allowed message, in its longest encoding, through the whole server: how long it delays other
// calls, and how much memory many of them take at once.
import { createRemoteModel } from "./models.ts";
import { createPayers } from "./payers.ts";
import { startServer } from "./server.ts";
import { type BenchDatabase, type Figure, median, residentMib, startProgram } from "./support.ts";

const CHARACTERS = 400_000;
const AT_ONCE = 64;
const ROUNDS = 5;
const SAMPLE_MS = 20;

export async function bigBody(database: BenchDatabase): Promise<Figure[]> {
  const upstream = startProgram(["bench/upstream-server.ts"], {});
  const model = createRemoteModel(await upstream.next(/^ready on (\S+)/));
  const [payer] = await createPayers(database.owner, 1);
  const server = await startServer(database, { VX_MODELS: model.path }, [
    "--import",
    "./bench/pauses.ts",
    "src/vx.js",
    "serve",
  ]);
  const content = "\\ud83d\\ude00".repeat(CHARACTERS);
  const body = `{"model":"bench","max_tokens":100,"messages":[{"role":"user","content":"${content}"}]}`;
  const send = async () => {
    const response = await fetch(`${server.url}/v1/generate`, {
      method: "POST",
      headers: { authorization: `Bearer ${payer?.secret}`, "content-type": "application/json" },
      body,
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
  };
  const longestPause = async () => {
    process.kill(server.pid, "SIGUSR2");
    return Number(await server.next(/^longest pause (\S+) ms/));
  };
  await send();
  await longestPause();
  const pauses: number[] = [];
  const tookMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now();
    await send();
    tookMs.push(performance.now() - startedAt);
    pauses.push(await longestPause());
  }
  let most = 0;
  const sampling = setInterval(() => {
    most = Math.max(most, residentMib(server.pid));
  }, SAMPLE_MS);
  await Promise.all(Array.from({ length: AT_ONCE }, send));
  clearInterval(sampling);
  const pauseOfMany = await longestPause();
  await server.stop();
  await upstream.stop();
  model.remove();
  return [
    {
      name: `a body of ${(body.length / 1e6).toFixed(1)} MB, answered in`,
      value: median(tookMs),
      unit: "ms",
    },
    { name: "  longest pause of the event loop", value: Math.max(...pauses), unit: "ms", atMost: 50 },
    { name: `  the same, ${AT_ONCE} of them at once`, value: pauseOfMany, unit: "ms", atMost: 50 },
    { name: `  resident memory, ${AT_ONCE} of them at once`, value: most, unit: "MiB", atMost: 1_024 },
  ];
}
