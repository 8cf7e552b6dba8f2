import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test, vi } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres.ts";
import { startTestApp } from "../support/app.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { urlTo } from "../support/embedded.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";

test("while the database is down, calls and /readyz return 503; afterwards both recover", async () => {
  const folder = createDataFolder("loss");
  const postgres = await startEmbeddedPostgres({ dataDir: folder.path, print: () => undefined });
  const url = urlTo(postgres);
  const app = await startTestApp({ env: { DATABASE_URL: url } });
  const { secret } = await createTestKey(operatorOf(app));
  const health = createClient(Health, createGrpcTransport({ baseUrl: app.url }));

  await postgres.stop();
  const refused = await fetch(`${app.url}/v1/me`, { headers: bearer(secret) });
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: "unavailable" } });
  await vi.waitFor(async () => expect((await fetch(`${app.url}/readyz`)).status).toBe(503));
  expect((await fetch(`${app.url}/livez`)).status).toBe(200);
  expect(await health.check({})).toMatchObject({ status: Status.NOT_SERVING });

  const again = await startEmbeddedPostgres({ dataDir: folder.path, print: () => undefined });
  await vi.waitFor(async () => expect((await fetch(`${app.url}/readyz`)).status).toBe(200));
  expect((await fetch(`${app.url}/v1/me`, { headers: bearer(secret) })).status).toBe(200);
  expect(await health.check({})).toMatchObject({ status: Status.SERVING });
  await app.stop();
  await again.stop();
  folder.remove();
});
