import { timestampDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AdminService } from "../../../gen/vx/admin/v1/admin_pb.js";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { operatorCall, operatorProtocols } from "../../support/operator.ts";

const { createAccount, getAccount, listAccounts } = AdminService.method;
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.stop());

describe.each(operatorProtocols)("$name", (protocol) => {
  const call = operatorCall(protocol, () => app);
  const create = async (request: { name: string; plan?: string }) => {
    const outcome = await call(createAccount, request);
    return outcome.ok ? outcome.message.account : undefined;
  };

  test("a new account has the plan free and a balance of zero, and can be read", async () => {
    const startedAt = Date.now();
    const account = await create({ name: "acme" });
    expect(account).toMatchObject({
      id: expect.stringMatching(/^acct_[0-9a-z]{26}$/),
      name: "acme",
      plan: "free",
      balanceMicros: 0n,
      balance: "$0.00",
      heldMicros: 0n,
    });
    const createdAt = account?.createdAt ? timestampDate(account.createdAt).getTime() : 0;
    expect(createdAt).toBeGreaterThanOrEqual(startedAt - 1);
    expect(await call(getAccount, { accountId: account?.id ?? "" })).toMatchObject({ message: { account } });
  });

  test("an account can be created on another plan", async () => {
    expect(await create({ name: "x".repeat(100), plan: "pro" })).toMatchObject({ plan: "pro" });
  });

  test.each([
    { what: "no name", request: { name: "" }, field: "name" },
    { what: "a name of 101 characters", request: { name: "x".repeat(101) }, field: "name" },
    { what: "NUL in the name", request: { name: "\u0000" }, field: "name" },
    { what: "an unknown plan", request: { name: "x", plan: "gold" }, field: "plan" },
    { what: "an invalid plan name", request: { name: "x", plan: "Pro!" }, field: "plan" },
  ])("$what is a 400 that names $field", async ({ request, field }) => {
    expect(await call(createAccount, request)).toMatchObject({ reason: "invalid_argument", fields: [field] });
  });

  test("an unknown account is not found", async () => {
    for (const accountId of ["acct_none", "key_1", "%"]) {
      expect(await call(getAccount, { accountId })).toMatchObject({ code: "not_found", reason: "not_found" });
    }
    expect(await call(getAccount, { accountId: "" })).toMatchObject({ fields: ["account_id"] });
  });

  test("accounts are listed newest first, in stable pages while accounts are added", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await create({ name: `account ${i}` }))?.id ?? "");
    const page = async (pageToken: string) => {
      const outcome = await call(listAccounts, { pageSize: 2, pageToken });
      return outcome.ok ? outcome.message : undefined;
    };
    const first = await page("");
    await create({ name: "later" });
    const second = await page(first?.nextPageToken ?? "");
    const listed = [...(first?.accounts ?? []), ...(second?.accounts ?? [])].map(({ id }) => id);
    expect(listed.slice(0, 3)).toEqual(ids);
    expect(await call(listAccounts, { pageSize: -1 })).toMatchObject({ fields: ["page_size"] });
    expect(await call(listAccounts, { pageToken: "x" })).toMatchObject({ fields: ["page_token"] });
  });
});
