// The cost of reading streams of a model server: src/upstreams/http, compared with the bodies of undici and the
// stream of eventsource-parser. See docs/decisions/0011-upstream-streams.md.
import { ReadableStream, TextDecoderStream } from "node:stream/web";
import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { fetch, Pool } from "undici";
import type { Checkout } from "../checkout.ts";
import type { Part } from "../part.ts";
import { startBaseline } from "../program.ts";

const STREAMS = 500;
const PIECES = 100;

type Cost = { readonly cpuMicrosPerPiece: number; readonly kibPerStream: number };
type Baselines = { callbacks: Cost; parserStream: Cost; fetch: Cost };
type Read = () => AsyncIterable<string>;

export const streamReaders: Part<{ exchange: Cost }, Baselines> = {
  rounds: 5,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const read = await openExchange(checkout, cleanup);
    return { exchange: () => measureReads(read) };
  },
  openBaselines: async (cleanup) => {
    const url = await startServer(cleanup);
    const pool = new Pool(url);
    cleanup.defer(() => pool.close());
    return {
      callbacks: () => measureReads(() => requestWithCallbacks(pool)),
      parserStream: () => measureReads(() => requestWithParserStream(pool)),
      fetch: () => measureReads(() => fetchWithParserStream(url)),
    };
  },
  figures: (
    [
      ["exchange", "src/upstreams/http"],
      ["callbacks", "request, callbacks of the parser"],
      ["parserStream", "request, EventSourceParserStream"],
      ["fetch", "fetch, EventSourceParserStream"],
    ] as const
  ).flatMap(([arm, name]) => [
    { name: `${name}: CPU per piece`, unit: "µs", value: (r) => r[arm].cpuMicrosPerPiece },
    { name: "  / src/upstreams/http", unit: "×", value: (r) => r[arm].cpuMicrosPerPiece / r.exchange.cpuMicrosPerPiece },
    { name: "  memory per stream", unit: "KiB", value: (r) => r[arm].kibPerStream },
  ]),
};

const PROMPT = {
  messages: [{ role: "user" as const, content: "Say hello." }],
  maxTokens: 1_000,
  temperature: undefined,
  stop: [],
  options: {},
  traits: { capabilities: [], extraFields: [] },
  streamed: true,
};
const PATH = "/v1/chat/completions";
const REQUEST = {
  method: "POST" as const,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ model: "m", messages: PROMPT.messages, max_tokens: 1_000, stream: true }),
};

function startServer(cleanup: AsyncDisposableStack): Promise<string> {
  return startBaseline(cleanup, "paced-server", { args: [String(PIECES)] });
}

/** CPU time of this process for each piece, and the live memory of each stream in the middle of all of them. */
async function measureReads(read: Read): Promise<Cost> {
  const before = liveBytes();
  let middleBytes = 0;
  let pieces = 0;
  let collectionMicros = 0;
  const cpuBefore = process.cpuUsage();
  const readAll = async () => {
    for await (const piece of read()) {
      pieces += piece.split(" ").length - 1;
      if (middleBytes !== 0 || pieces < (STREAMS * PIECES) / 2) continue;
      const collectionBefore = process.cpuUsage();
      middleBytes = liveBytes();
      collectionMicros = microsSince(collectionBefore);
    }
  };
  await Promise.all(Array.from({ length: STREAMS }, readAll));
  if (pieces !== STREAMS * PIECES) throw new Error(`${pieces} pieces arrived`);
  return {
    cpuMicrosPerPiece: (microsSince(cpuBefore) - collectionMicros) / pieces,
    kibPerStream: (middleBytes - before) / 1_024 / STREAMS,
  };
}

function liveBytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function microsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

async function openExchange(checkout: Checkout, cleanup: AsyncDisposableStack): Promise<Read> {
  const { Connections } = await checkout.load<typeof import("../../src/upstreams/http/connection-pool.ts")>(
    "src/upstreams/http/connection-pool.ts",
  );
  const { openUpstream } =
    await checkout.load<typeof import("../../src/upstreams/open-upstream.ts")>("src/upstreams/open-upstream.ts");
  const baseUrl = `${await startServer(cleanup)}/v1`;
  const upstream = openUpstream(
    { kind: "openai", baseUrl, apiKeyEnv: undefined, model: "m", timeoutMs: 30_000 },
    {
      connections: new Connections(),
      env: {},
      loadFirstTokens: async () => (text) => ({ text, tokens: 0 }),
      openSandbox: () => {
        throw new Error("no sandbox here");
      },
    },
  );
  cleanup.defer(() => upstream.close());
  return async function* () {
    for await (const event of upstream.generate(PROMPT, new AbortController().signal)) {
      if (event.kind === "text") yield event.text;
    }
  };
}

async function* requestWithCallbacks(pool: Pool): AsyncGenerator<string> {
  const { body } = await pool.request({ ...REQUEST, path: PATH, signal: new AbortController().signal });
  const pieces: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => pieces.push(pieceOf(data)) });
  const decoder = new StringDecoder("utf8");
  for await (const chunk of body) {
    parser.feed(decoder.write(chunk as Buffer));
    yield* pieces.splice(0);
  }
}

async function* requestWithParserStream(pool: Pool): AsyncGenerator<string> {
  const { body } = await pool.request({ ...REQUEST, path: PATH, signal: new AbortController().signal });
  yield* piecesOf(ReadableStream.from(body));
}

async function* fetchWithParserStream(url: string): AsyncGenerator<string> {
  const { body } = await fetch(`${url}${PATH}`, { ...REQUEST, signal: new AbortController().signal });
  yield* piecesOf(body as ReadableStream);
}

async function* piecesOf(body: ReadableStream): AsyncGenerator<string> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) yield pieceOf(data);
}

function pieceOf(data: string): string {
  if (data === "[DONE]") return "";
  const chunk = JSON.parse(data) as { choices?: { delta?: { content?: string } }[] };
  return chunk.choices?.[0]?.delta?.content ?? "";
}
