import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { urlTo } from "../support/embedded.ts";
import { replyWhen } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { generators } from "../support/generators.ts";
import { modelsJson, REQUEST } from "../support/metered.ts";
import { createModelsFile } from "../support/models.ts";

const folder = createDataFolder("loss");
let upstream: FakeUpstream;
let models: ReturnType<typeof createModelsFile>;

beforeAll(async () => {
  upstream = await FakeUpstream.start();
  models = createModelsFile(modelsJson(upstream.baseUrl));
});
afterAll(async () => {
  await upstream.stop();
  models.remove();
  folder.remove();
});

const startPostgres = () => startEmbeddedPostgres({ dataDir: folder.path, print: () => undefined });

test("a settlement waits while the database is down, the drain waits for it, and the call is charged once", async () => {
  const postgres = await startPostgres();
  const url = urlTo(postgres);
  const app = await startTestApp({ env: { DATABASE_URL: url, VX_MODELS: models.path } });
  const operator = operatorOf(app);
  const key = await createTestKey(operator);
  const { accountId } = key;
  await operator.creditAccount({ accountId, amountMicros: 1_000n, reason: "test", idempotencyKey: "1" });
  const generator = (generators.at(-1) as (typeof generators)[number]).open(app.url);
  const rest = Promise.withResolvers<void>();
  upstream.next(replyWhen(rest.promise, 1));
  const answered = generator.generate(REQUEST, { secret: key.secret });
  await upstream.until(({ executions }) => executions.length === 1);

  await postgres.stop();
  rest.resolve();
  await upstream.until(({ calls }) => calls[0]?.ended === "finished");
  const stopped = app.stop();
  await refused(app);

  const again = await startPostgres();
  expect(await answered).toMatchObject({ balanceMicros: 981n, usage: { costMicros: 19n } });
  await stopped;

  const next = await startTestApp({ env: { DATABASE_URL: url, VX_MODELS: models.path } });
  const account = await operatorOf(next).getAccount({ accountId });
  expect(account.account).toMatchObject({ balanceMicros: 981n, heldMicros: 0n });
  expect(await operatorOf(next).audit({})).toMatchObject({ consistent: true, entries: 2n });
  // A server can be stopped while the database is down.
  await again.stop();
  await next.stop();
});

async function refused({ url }: TestApp): Promise<void> {
  await vi.waitFor(() => expect(fetch(`${url}/livez`)).rejects.toThrow());
}
