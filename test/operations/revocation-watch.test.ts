import { expect, test, vi } from "vitest";
import { silentAfter } from "../support/fake-upstreams/behaviours.ts";
import { operatorOf } from "../support/fixtures.ts";
import { type GeneratorCase, generators } from "../support/generators.ts";
import { REQUEST, startMetered } from "../support/metered.ts";

test("a revocation stops streams while a slow statement occupies all connections for single statements", async () => {
  const metered = await startMetered({ servers: 2, env: { VX_DATABASE_CONNECTIONS: "1" } });
  const [first, second] = metered.apps as [typeof metered.app, typeof metered.app];
  const { owner } = first.database;
  const key = await metered.payer(1_000n);
  const slow = await metered.payer(1n);
  const generator = (generators[0] as GeneratorCase).open(first.url);
  metered.upstream.next(silentAfter(2));
  const running = Promise.withResolvers<void>();
  const ended = (async () => {
    for await (const _ of generator.stream(REQUEST, { secret: key.secret })) running.resolve();
  })().catch((error: unknown) => error);
  await running.promise;
  await owner.begin(async (transaction) => {
    await transaction`SELECT FROM vx.accounts WHERE id = ${slow.accountId} FOR UPDATE`;
    const change = metered.operator.setAccountPlan({ accountId: slow.accountId, plan: "pro" });
    change.catch(() => undefined);
    const blocked = () => owner`
      SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'set_account_plan'
        AND datname = current_database()`;
    await vi.waitFor(async () => expect(await blocked()).toHaveLength(1));
    await operatorOf(second).revokeKey({ keyId: key.id });
    expect(await ended).toMatchObject({ reason: "revoked_api_key" });
    expect(await blocked()).toHaveLength(1);
  });
  generator.close();
  await metered.stop();
});
