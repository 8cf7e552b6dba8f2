import { expect, test, vi } from "vitest";
import { replyWhen } from "../support/fake-upstreams/behaviours.ts";
import { generators } from "../support/generators.ts";
import { lockMoney, REQUEST, useMetered } from "../support/metered.ts";
import { startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const [{ open }] = generators as [(typeof generators)[number]];
const metered = useMetered();

test("a server killed between the upstream's response and the settlement charges nothing, and a retry works", async () => {
  const folder = createTemporaryFolder("crash");
  const { database } = metered.app;
  const server = startServerProcess({
    DATABASE_URL: database.url,
    VX_DATA_DIR: folder.path,
    VX_MODELS: metered.modelsFile,
    // One pipeline: a waiting batch delays the settlement.
    VX_BILLING_PIPELINES: "1",
  });
  const doomed = open(await server.line(/^vx ready on (\S+)$/m));
  const [key, other] = [await metered.payer(1_000n), await metered.payer(1_000n)];
  const options = { secret: key.secret, headers: { "idempotency-key": "precious" } };
  const rest = Promise.withResolvers<void>();
  metered.upstream.next(replyWhen(rest.promise, 2));
  const lost = doomed.generate(REQUEST, options).catch((error: unknown) => error);
  await metered.upstream.until(({ executions }) => executions.length === 1);
  const lock = await lockMoney(metered, other);
  const waiting = doomed.generate(REQUEST, { secret: other.secret }).catch((error: unknown) => error);
  await lock.wanted();
  rest.resolve();
  await metered.upstream.until(({ calls }) => calls[0]?.ended === "finished");

  await server.end("SIGKILL");
  await Promise.all([lost, waiting]);
  doomed.close();
  await lock.free();
  const survivor = open(metered.app.url);
  await expect(survivor.generate(REQUEST, options)).rejects.toMatchObject({ reason: "idempotency_in_progress" });
  expect(await metered.account(key)).toEqual({ balance: 1_000, held: 46 });

  await metered.missServerOf(key);
  await vi.waitFor(async () => expect((await metered.account(key)).held).toBe(0));
  expect(await metered.rows(key)).toEqual([]);
  expect(await survivor.generate(REQUEST, options)).toMatchObject({ balanceMicros: 981n });
  expect(await survivor.generate(REQUEST, options)).toMatchObject({ balanceMicros: 981n });
  expect(await metered.rows(key)).toHaveLength(1);
  expect(metered.upstream.executions).toHaveLength(2);
  survivor.close();
  await vi.waitFor(async () => expect((await metered.account(other)).held).toBe(0));
  expect(await metered.account(other)).toEqual({ balance: 1_000, held: 0 });
  folder.remove();
});
