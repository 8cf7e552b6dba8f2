// What bounds the keys of an account counts for members as for keys.

import { expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { Customer, useCustomerApp } from "../support/customer.ts";
import { useOperator } from "../support/fixtures.ts";

const app = useCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_PLAN: "pro" });
const operator = useOperator(app);

async function newOwner() {
  const { customer, accountId } = await Customer.signUp(app);
  const create = (request = {}) => customer.do("CreateKey", { name: "key", ...request }, accountId);
  const update = (keyId: string, change: object) => customer.call("UpdateKey", { keyId, ...change }, accountId);
  return { customer, accountId, create, update };
}

type KeyOf = { readonly apiKey: { readonly id: string; readonly rateLimitRpm: number }; readonly secret: string };

test("the limit that a member gives to a key is at most that of the plan, and does not outlast it", async () => {
  const { accountId, create, customer, update } = await newOwner();
  const { apiKey } = (await create({ rateLimitRpm: 600 })) as KeyOf;
  await operator.setAccountPlan({ accountId, plan: "free" });
  const { apiKey: found } = (await customer.do("GetKey", { keyId: apiKey.id }, accountId)) as KeyOf;
  expect(found.rateLimitRpm).toBe(20);
  expect(await customer.fail("CreateKey", { name: "more", rateLimitRpm: 21 }, accountId)).toBe("400 invalid_argument");
  await create({ rateLimitRpm: 20 });
  expect(await update(apiKey.id, { rateLimitRpm: 21 })).toMatchObject({ status: 400 });
});

test("a member creates as many keys in an hour as the plan allows, the playground's included", async () => {
  await operator.putPlan({ name: "few-keys", rpm: 5, maxActiveKeys: 2, maxKeysCreatedPerHour: 3 });
  const { accountId, create, customer } = await newOwner();
  await operator.setAccountPlan({ accountId, plan: "few-keys" });
  await customer.do("CreatePlaygroundKey", {}, accountId);
  for (let i = 0; i < 2; i++) {
    const { apiKey } = (await create()) as KeyOf;
    await customer.do("RevokeKey", { keyId: apiKey.id }, accountId);
  }
  expect(await customer.fail("CreateKey", { name: "fourth" }, accountId)).toBe("429 key_creation_limit_reached");
  // A page that is loaded again gets its key with another secret.
  await customer.do("CreatePlaygroundKey", {}, accountId);
  await operator.createKey({ accountId, name: "by the operator" });
});

test("only operators raise the limit that an operator gave to a key", async () => {
  const { create, update } = await newOwner();
  const { apiKey, secret } = (await create({ scopes: ["keys"] })) as KeyOf;
  const keyId = apiKey.id;
  await operator.setKeyLimit({ keyId, rateLimitRpm: 7 });
  expect(await update(keyId, { rateLimitRpm: 8 })).toMatchObject({ status: 400 });
  expect(await update(keyId, { updateMask: "rateLimitRpm" })).toMatchObject({ status: 400 });
  const path = `/v1/keys/${keyId}`;
  const byKey = await sendJson(app.url, { verb: "PATCH", path, secret, body: { rate_limit_rpm: 8 } });
  expect(byKey.status).toBe(400);
  expect(await update(keyId, { rateLimitRpm: 6 })).toMatchObject({ status: 200 });
  expect(await update(keyId, { rateLimitRpm: 7 })).toMatchObject({ status: 400 });
  await operator.setKeyLimit({ keyId, rateLimitRpm: 900 });
  expect(await update(keyId, { name: "renamed" })).toMatchObject({ body: { apiKey: { rateLimitRpm: 900 } } });
  expect(await update(keyId, { updateMask: "rateLimitRpm" })).toMatchObject({ body: { apiKey: { rateLimitRpm: 600 } } });
});
