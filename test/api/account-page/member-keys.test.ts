// What bounds the keys of an account counts for members as for keys.

import { expect, test } from "vitest";
import { Customer, useCustomerApp } from "../../support/customer.ts";
import { operatorOf } from "../../support/fixtures.ts";

const app = useCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_PLAN: "pro" });
let people = 0;

async function newOwner() {
  const { customer, accountId } = await Customer.signUp(app, `keys${++people}@example.com`);
  const create = (request = {}) => customer.do("CreateKey", { name: "key", ...request }, accountId);
  return { customer, accountId, create };
}

type KeyOf = {
  readonly apiKey: { readonly id: string; readonly rateLimitRpm: number };
  readonly secret: string;
};

test("the limit that a member gives to a key does not outlast the plan", async () => {
  const { accountId, create, customer } = await newOwner();
  const { apiKey } = (await create({ rateLimitRpm: 600 })) as KeyOf;
  await operatorOf(app).setAccountPlan({ accountId, plan: "free" });
  const { apiKey: found } = (await customer.do("GetKey", { keyId: apiKey.id }, accountId)) as KeyOf;
  expect(found.rateLimitRpm).toBe(20);
  expect(await customer.fail("CreateKey", { name: "more", rateLimitRpm: 21 }, accountId)).toBe("400 invalid_argument");
});

test("a member creates as many keys in an hour as the plan allows, the playground's included", async () => {
  const operator = operatorOf(app);
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
  const { accountId, create, customer } = await newOwner();
  const operator = operatorOf(app);
  const { apiKey, secret } = (await create({ scopes: ["keys"] })) as KeyOf;
  const keyId = apiKey.id;
  await operator.setKeyLimit({ keyId, rateLimitRpm: 7 });
  const update = (change: object) => customer.call("UpdateKey", { keyId, ...change }, accountId);
  expect(await update({ rateLimitRpm: 8 })).toMatchObject({ status: 400 });
  expect(await update({ updateMask: "rateLimitRpm" })).toMatchObject({ status: 400 });
  const byKey = await fetch(`${app.url}/v1/keys/${keyId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ rate_limit_rpm: 8 }),
  });
  expect(byKey.status).toBe(400);
  expect(await update({ rateLimitRpm: 6 })).toMatchObject({ status: 200 });
  expect(await update({ rateLimitRpm: 7 })).toMatchObject({ status: 400 });
  await operator.setKeyLimit({ keyId, rateLimitRpm: 900 });
  expect(await update({ name: "renamed" })).toMatchObject({ body: { apiKey: { rateLimitRpm: 900 } } });
  expect(await update({ updateMask: "rateLimitRpm" })).toMatchObject({
    body: { apiKey: { rateLimitRpm: 600 } },
  });
});
