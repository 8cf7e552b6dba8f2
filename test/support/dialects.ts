import type { RemoteKind } from "../../src/domain/model.ts";
import { startTestApp, type TestApp } from "./app.ts";
import { FakeUpstream } from "./fake-upstreams/fake-upstream.ts";
import { WIRES_OF_KIND, type Wire } from "./fake-upstreams/wire.ts";
import { createTestKey, type Operator, operatorOf, type TestKey } from "./fixtures.ts";
import { createModelsFile } from "./models.ts";
import { started } from "./started.ts";

export const KINDS = Object.keys(WIRES_OF_KIND) as RemoteKind[];

/** A server with a model for each dialect and for the sandbox, which has its name and costs a micro per token. */
export type Dialects = {
  readonly app: TestApp;
  readonly operator: Operator;
  readonly upstreams: Readonly<Record<RemoteKind, FakeUpstream>>;
  /** A key whose account has 10 million micros. */
  readonly key: TestKey;
  /** The newest ledger entry of the key. */
  lastEntry(): Promise<Awaited<ReturnType<Operator["listLedgerEntries"]>>["entries"][number] | undefined>;
  stop(): Promise<void>;
};

let shared: Promise<Dialects> | undefined;

/** The one that the files of a worker share: see useTestApp. */
export function useDialects(): Dialects {
  return started(async () => {
    shared ??= startDialects();
    return { ...(await shared), stop: async () => undefined };
  });
}

async function startDialects(): Promise<Dialects> {
  const fakes = await Promise.all(
    KINDS.map(async (kind) => [kind, await FakeUpstream.start({ wire: WIRES_OF_KIND[kind][0] as Wire })] as const),
  );
  const upstreams = Object.fromEntries(fakes) as Record<RemoteKind, FakeUpstream>;
  const model = (id: string, upstream: object) => ({
    id,
    context_window: 200_000,
    max_output_tokens: 32_000,
    capabilities: ["tools", "reasoning", "images", "json_schema"],
    extra_fields: ["prompt_cache_retention"],
    input_micros_per_million_tokens: 1_000_000,
    output_micros_per_million_tokens: 1_000_000,
    upstream,
  });
  const models = [
    model("sandbox", { kind: "sandbox" }),
    ...KINDS.map((kind) => model(kind, { kind, base_url: upstreams[kind].baseUrl, model: "fake-model" })),
  ];
  const file = createModelsFile(JSON.stringify({ models }));
  const app = await startTestApp({ env: { VX_MODELS: file.path } });
  const operator = operatorOf(app);
  const key = await createTestKey(operator);
  const { accountId } = key;
  await operator.creditAccount({ accountId, amountMicros: 10_000_000n, reason: "test", idempotencyKey: "1" });
  return {
    app,
    operator,
    upstreams,
    key,
    lastEntry: async () => (await operator.listLedgerEntries({ accountId, pageSize: 1 })).entries[0],
    stop: async () => {
      await app.stop();
      await Promise.all(KINDS.map((kind) => upstreams[kind].stop()));
      file.remove();
    },
  };
}
