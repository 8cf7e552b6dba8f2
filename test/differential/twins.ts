import { AdminTokens } from "../../src/app/admin-tokens.ts";
import { createComponents } from "../../src/app/components.ts";
import { prepareDatabase } from "../../src/app/prepare-database.ts";
import { createOperatorServer, createPublicServer } from "../../src/app/servers.ts";
import { readConfig } from "../../src/app/settings/config.ts";
import { Catalog } from "../../src/models/catalog.ts";
import { readModels } from "../../src/models/read-models.ts";
import { createLog, type Log } from "../../src/telemetry/log.ts";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { createTestDatabase } from "../support/database.ts";
import { refuse } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createTestKey, type Operator, operatorOf, type TestKey } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { bearer } from "../support/protocols.ts";
import { createConnectListener } from "./connect-listener.ts";

export const SANDBOX = "sandbox";
export const VECTORS = "vectors";
export const REFUSED = "refused";

export const MAX_BODY_BYTES = 100_000;
export const ALLOWED_ORIGIN = "https://app.example";

/** The limit of the keys whose window is used up. */
const LIMITED_RPM = 7;

/** The keys of one account, and of accounts that some errors need. */
export type Tenant = {
  readonly keyId: string;
  /** All scopes, and a large balance. */
  readonly full: string;
  readonly readOnly: string;
  readonly generateOnly: string;
  /** Its rate limit is used up. */
  readonly limited: TestKey;
  readonly revoked: string;
  readonly expired: TestKey;
  /** Its account has no balance. */
  readonly poor: string;
  /** Its account pays for calls whose charge depends on how far they came before their deadline. */
  readonly hurried: string;
  /** Its account cannot create another key. */
  readonly capped: string;
};

/** Two tenants with the same history: one calls only the first listener, the other only the second. */
export type Twins = readonly [Tenant, Tenant];

/** Two listeners on the same components: one with the direct path, one that passes every call to Connect. */
export type TwinServers = {
  readonly urls: readonly [direct: URL, connect: URL];
  createTwins(): Promise<Twins>;
  /** Uses up the windows of the limited keys of these tenants, in this minute and the next one. */
  useUpWindows(twins: Twins): Promise<void>;
  /** The lines that each listener logged. */
  readonly logs: readonly [direct: readonly string[], connect: readonly string[]];
  stop(): Promise<void>;
};

export async function startTwinServers(): Promise<TwinServers> {
  const database = await createTestDatabase();
  const upstream = await FakeUpstream.start({ usual: refuse(500) });
  const models = createModelsFile(modelsText(upstream.baseUrl));
  const config = readConfig({
    DATABASE_URL: database.url,
    PORT: "0",
    VX_ADMIN_PORT: "0",
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
    VX_MODELS: models.path,
    VX_MAX_BODY_BYTES: String(MAX_BODY_BYTES),
    VX_AUTH_FAILURES_PER_MINUTE: "1000000000",
    VX_CORS_ORIGINS: ALLOWED_ORIGIN,
  });
  const logs: [string[], string[]] = [[], []];
  const [log, connectLog] = logs.map((lines) => createLog(config.logLevel, { write: (line) => lines.push(line) })) as [Log, Log];
  const prepared = await prepareDatabase({ config, log, print: () => undefined, onWait: () => undefined });
  const catalog = new Catalog(await readModels(models.path, {}));
  const components = createComponents({
    config,
    log,
    listeners: [],
    catalog,
    login: prepared,
    maintenance: undefined,
    telemetry: undefined,
  });
  await components.openCells();
  await components.registerPrices();
  await components.start();
  const shared = { ...components, config, log };
  const listeners = [
    createPublicServer(shared),
    createConnectListener({ ...shared, log: connectLog }),
    createOperatorServer({
      ...shared,
      adminTokens: AdminTokens.load(config, log),
      readMetrics: async () => components.metrics.registry,
    }),
  ];
  const ports: number[] = [];
  for (const listener of listeners) ports.push((await listener.open()).port);
  const [direct, connect, admin] = ports.map((port) => new URL(`http://127.0.0.1:${port}`)) as [URL, URL, URL];
  const operator = operatorOf({ adminUrl: admin.href } as never);
  await operator.putPlan({ name: "large", rpm: 1_000_000, maxActiveKeys: 1_000_000, maxKeysCreatedPerHour: 1_000_000 });
  await operator.putPlan({ name: "one-key", rpm: 1_000_000, maxActiveKeys: 1 });
  return {
    urls: [direct, connect],
    createTwins: async () => {
      const twins: Twins = [await createTenant(operator), await createTenant(operator)];
      for (const { limited, expired } of twins) {
        // The first call of a key creates its window.
        await fetch(new URL("/v1/me", connect), { headers: bearer(limited.secret) });
        await database.owner`
          UPDATE vx.keys SET expires_at = now() - interval '1 day' WHERE id = ${expired.id}`;
      }
      return twins;
    },
    // A statement locks one row only: one that locked several could wait in a circle with an admission.
    useUpWindows: async (twins) => {
      for (const { limited } of twins) {
        await database.owner`
          UPDATE vx.key_minutes SET minute = floor(extract(epoch FROM now()) / 60) + 1, used = ${LIMITED_RPM}
          WHERE key_id = ${limited.id}`;
      }
    },
    logs,
    stop: async () => {
      await components.drain(listeners, 0, false);
      await components.close();
      await prepared.stop();
      await upstream.stop();
      models.remove();
      await database.drop();
    },
  };
}

const SCOPES = ["generate", "read", "keys", "webhooks", "billing"];

async function createTenant(operator: Operator): Promise<Tenant> {
  const full = await createPaidKey(operator);
  const { accountId } = full;
  const another = async (options: { scopes?: string[]; rateLimitRpm?: number }) =>
    await createTestKey(operator, { accountId, plan: "large", scopes: SCOPES, ...options });
  const revoked = await another({});
  await operator.revokeKey({ keyId: revoked.id });
  return {
    keyId: full.id,
    full: full.secret,
    readOnly: (await another({ scopes: ["read"] })).secret,
    generateOnly: (await another({ scopes: ["generate"] })).secret,
    limited: await another({ rateLimitRpm: LIMITED_RPM }),
    revoked: revoked.secret,
    expired: await another({}),
    poor: (await createTestKey(operator, { plan: "large", scopes: SCOPES })).secret,
    hurried: (await createPaidKey(operator)).secret,
    capped: (await createTestKey(operator, { plan: "one-key", scopes: SCOPES })).secret,
  };
}

async function createPaidKey(operator: Operator): Promise<TestKey> {
  const key = await createTestKey(operator, { plan: "large", scopes: SCOPES });
  const { accountId } = key;
  const amountMicros = 1_000_000_000_000n;
  await operator.creditAccount({ accountId, amountMicros, reason: "test", idempotencyKey: accountId });
  return key;
}

function modelsText(baseUrl: string): string {
  const model = (id: string, rest: object) => ({
    id,
    context_window: 12_000,
    max_output_tokens: 8_000,
    default_output_tokens: 500,
    input_micros_per_million_tokens: 1_000_000,
    output_micros_per_million_tokens: 2_000_000,
    upstream: { kind: "sandbox" },
    ...rest,
  });
  return JSON.stringify({
    models: [
      model(SANDBOX, { capabilities: ["tools", "images", "json_schema", "reasoning"] }),
      model(VECTORS, { capabilities: ["embeddings"] }),
      model(REFUSED, { upstream: { kind: "openai", base_url: baseUrl, model: "fake-model" } }),
    ],
  });
}
