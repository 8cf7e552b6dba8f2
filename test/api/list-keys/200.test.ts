import { expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { useTestApp } from "../../support/app.ts";
import { createTestKey, useOperator } from "../../support/fixtures.ts";
import { callOf, messageOf } from "../../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

async function list(secret: string, request: { pageSize?: number; pageToken?: string } = {}) {
  const message = messageOf(await call(KeyService.method.listKeys, request, secret));
  return { ids: message.apiKeys.map(({ id }) => id), ...message };
}

test("lists only the keys of the account, newest first, in every state", async () => {
  const calling = await createTestKey(operator);
  const { accountId } = calling;
  await createTestKey(operator);
  const revoked = await createTestKey(operator, { accountId });
  const newest = await createTestKey(operator, { accountId });
  await operator.revokeKey({ keyId: revoked.id });
  const { apiKeys, nextPageToken } = await list(calling.secret);
  expect(apiKeys).toMatchObject([
    { id: newest.id, state: "active" },
    { id: revoked.id, state: "revoked" },
    { id: calling.id, state: "active" },
  ]);
  expect(nextPageToken).toBe("");
  expect(JSON.stringify(apiKeys, (_, value) => (typeof value === "bigint" ? "" : value))).not.toContain(
    newest.secret.slice(12, -4),
  );
});

test("pages have no gap and no overlap while keys are added", async () => {
  const calling = await createTestKey(operator);
  const { accountId } = calling;
  const ids = [calling.id];
  for (let i = 0; i < 4; i++) ids.unshift((await createTestKey(operator, { accountId })).id);
  const first = await list(calling.secret, { pageSize: 2 });
  await createTestKey(operator, { accountId });
  const second = await list(calling.secret, { pageSize: 2, pageToken: first.nextPageToken });
  await createTestKey(operator, { accountId });
  const third = await list(calling.secret, { pageSize: 2, pageToken: second.nextPageToken });
  expect([first.ids, second.ids, third.ids]).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
  expect(third.nextPageToken).toBe("");
});

test("a full last page has no token", async () => {
  const calling = await createTestKey(operator);
  await createTestKey(operator, { accountId: calling.accountId });
  expect(await list(calling.secret, { pageSize: 2 })).toMatchObject({ nextPageToken: "" });
});
