import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { Customer, useCustomerApp } from "../support/customer.ts";
import { useOperator } from "../support/fixtures.ts";

const app = useCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_CREDIT: "1" });
const MONTH = { metric: "cost", window: "month" } as const;
const HOUR = { metric: "cost", window: "hour" } as const;
const operator = useOperator(app);
const newOwner = () => Customer.signUp(app);
const ofAccount = (accountId: string) => ({ case: "accountId", value: accountId }) as const;

/** What a customer sees of the limits of the account itself: the amount, and whether an operator set it. */
async function limitsOf(customer: Customer, accountId: string) {
  const { limits } = await customer.do("ListLimits", {}, accountId);
  const own = (limits as JsonObject[]).filter(({ owner }) => owner === "account");
  return own.map(({ id, window, amount, setByOperator = false }) => ({
    id: String(id),
    text: `${window} ${amount} ${setByOperator}`,
  }));
}

test("an account lists what its plan limits too: of each key without the use, and the active keys", async () => {
  const { customer, accountId } = await newOwner();
  await operator.putPlan({ name: "bounded", rpm: 7, maxActiveKeys: 3 });
  const bound = { metric: "tokens", window: "day", amount: 500n } as const;
  await operator.setLimit({ owner: { case: "plan", value: "bounded" }, limit: bound });
  await operator.setAccountPlan({ accountId, plan: "bounded" });
  await customer.do("SetLimit", { limit: { ...HOUR, amount: "9" } }, accountId);
  await customer.do("CreateKey", { name: "one" }, accountId);
  const expected = [
    { metric: "cost", owner: "account", remaining: 9n },
    { metric: "tokens", owner: "plan", ownerId: "bounded", amount: 500n, spent: 0n, remaining: 500n },
    { metric: "requests", window: "minute", owner: "plan", ownerId: "bounded", amount: 7n },
    { metric: "active_keys", owner: "plan", ownerId: "bounded", amount: 3n, held: 1n, remaining: 2n },
  ];
  const { limits } = await operator.listLimits({ owner: ofAccount(accountId) });
  expect(limits).toMatchObject(expected);
  const { limits: ofMember } = await customer.do("ListLimits", {}, accountId);
  expect((ofMember as JsonObject[]).map(({ metric, remaining }) => [metric, remaining])).toEqual(
    limits.map(({ metric, remaining }) => [metric, String(remaining)]),
  );
});

test("a member can neither change nor remove a limit that an operator set on the account", async () => {
  const { customer, accountId } = await newOwner();
  const owner = ofAccount(accountId);
  const set = (amount: string) => customer.fail("SetLimit", { limit: { ...MONTH, amount } }, accountId);
  await operator.setLimit({ owner, limit: { ...MONTH, amount: 1_000n } });
  await customer.do("SetLimit", { limit: { ...HOUR, amount: "9" } }, accountId);
  const [own, ofOperator] = await limitsOf(customer, accountId);
  expect([own?.text, ofOperator?.text]).toEqual(["hour 9 false", "month 1000 true"]);
  expect(await set("2000")).toBe("400 invalid_argument");
  expect(await set("500")).toBe("400 invalid_argument");
  expect(await customer.fail("RemoveLimit", { limitId: ofOperator?.id ?? "" }, accountId)).toBe("400 invalid_argument");
  // The same again changes nothing, and does not make it a limit of the customer.
  await customer.do("SetLimit", { limit: { ...MONTH, amount: "1000" } }, accountId);
  expect((await limitsOf(customer, accountId)).map(({ text }) => text)).toEqual(["hour 9 false", "month 1000 true"]);
  // An operator who sets a limit of the customer takes it over, and the operator's own can be removed.
  await operator.setLimit({ owner, limit: { ...HOUR, amount: 9n } });
  expect(await customer.fail("RemoveLimit", { limitId: own?.id ?? "" }, accountId)).toBe("400 invalid_argument");
  for (const { id: limitId } of await limitsOf(customer, accountId)) await operator.removeLimit({ owner, limitId });
  expect(await limitsOf(customer, accountId)).toEqual([]);
  await customer.do("SetLimit", { limit: { ...MONTH, amount: "2000" } }, accountId);
});

test("an owner can have 20 limits of operators and 20 others, whoever sets them first", async () => {
  const { customer, accountId } = await newOwner();
  const owner = ofAccount(accountId);
  const [ofCustomer, ofOperator] = [MANY.slice(0, 21), MANY.slice(21, 42)];
  for (const limit of ofCustomer.slice(0, 20)) await customer.do("SetLimit", { limit: { ...limit, amount: "9" } }, accountId);
  const one = { ...ofCustomer[20], amount: "9" };
  expect(await customer.fail("SetLimit", { limit: one }, accountId)).toBe("400 invalid_argument");
  for (const limit of ofOperator.slice(0, 20)) await operator.setLimit({ owner, limit: { ...limit, amount: 9n } });
  for (const limit of [ofOperator[20], ofCustomer[0]])
    await expect(operator.setLimit({ owner, limit: { ...limit, amount: 8n } })).rejects.toThrow("at most 20");
  expect(await limitsOf(customer, accountId)).toHaveLength(40);

  const limits = ofOperator.slice(0, 20).map((limit) => ({ ...limit, amount: 9n }));
  const keyId = (await operator.createKey({ accountId, name: "full", limits })).apiKey?.id ?? "";
  const update = (own: number) => {
    const all = [...ofOperator.slice(0, 20), ...ofCustomer.slice(0, own)].map((limit) => ({ ...limit, amount: "9" }));
    return { keyId, limits: all, updateMask: "limits" };
  };
  const { apiKey } = await customer.do("UpdateKey", update(20), accountId);
  expect((apiKey as JsonObject).limits).toHaveLength(40);
  expect(await customer.fail("UpdateKey", update(21), accountId)).toBe("400 invalid_argument");
});

/** Limits of which each can exist once. */
const MANY = ["cost", "tokens", "generations"].flatMap((metric) =>
  ["minute", "hour", "day", "week", "month", "total"].flatMap((window) => [
    { metric, window },
    { metric, window, per: "user" },
  ]),
);
MANY.push(
  { metric: "concurrent", window: "" },
  ...["day", "week", "month", "total"].map((window) => ({ metric: "cost_alert", window })),
  { metric: "cost_alert", window: "day", per: "user" },
);

test("a raise of an operator that has ended does not keep a member from repeating the limits of a key", async () => {
  const { customer, accountId } = await newOwner();
  const raise = { temporaryAmount: 2_000n, temporaryUntil: timestampFromDate(new Date(Date.now() + 60_000)) };
  const limits = [{ ...MONTH, amount: 1_000n, ...raise }];
  const { apiKey } = await operator.createKey({ accountId, name: "capped", scopes: ["generate"], limits });
  const keyId = apiKey?.id ?? "";
  const update = (own: JsonObject[]) => customer.fail("UpdateKey", { keyId, limits: own, updateMask: "limits" }, accountId);
  expect(await update([{ ...MONTH, amount: "1000" }])).toBe("400 invalid_argument");
  expect(await update([])).toBe("400 invalid_argument");
  await app.database.owner`UPDATE vx.limits SET temporary_until = now() - interval '1 s' WHERE owner_id = ${keyId}`;
  const changed = [
    { ...MONTH, amount: "1000" },
    { ...HOUR, amount: "5" },
  ];
  await customer.do("UpdateKey", { keyId, name: "renamed", limits: changed }, accountId);
  const { limits: found } = await operator.listLimits({ owner: { case: "keyId", value: keyId } });
  const own = found.filter(({ ownerId, id }) => ownerId === keyId && id !== "");
  expect(own.map(({ window, setByOperator }) => [window, setByOperator])).toEqual([
    ["hour", false],
    ["month", true],
  ]);
});

test("a key can lower the limits that an operator gave to it or to its keys, and not raise or remove them", async () => {
  const { accountId } = await newOwner();
  const scopes = ["generate", "keys"];
  const limits = [{ ...MONTH, amount: 1_000n }];
  const parent = await operator.createKey({ accountId, name: "parent", scopes });
  const send = (verb: string, path: string, body: object) => sendJson(app.url, { verb, path, body, secret: parent.secret });
  const child = (await send("POST", "/v1/keys", { name: "child" })).body as { api_key?: { id: string } };
  const keyId = child.api_key?.id ?? "";
  await operator.updateKey({ keyId, limits, updateMask: { paths: ["limits"] } });
  const patch = (list: object[]) => send("PATCH", `/v1/keys/${keyId}`, { limits: list });
  expect((await patch([{ ...MONTH, amount: 2_000 }])).status).toBe(400);
  expect((await patch([])).status).toBe(400);
  expect((await patch([{ ...MONTH, amount: 900 }])).status).toBe(200);
  expect((await patch([{ ...MONTH, amount: 1_000 }])).status).toBe(400);
  const { limits: after } = await operator.listLimits({ owner: { case: "keyId", value: keyId } });
  const found = after.find(({ window, id }) => window === "month" && id !== "");
  expect(found).toMatchObject({ amount: 900n, setByOperator: true });
});
