// People and their links are in the first cell; here the account is in another one.

import { afterAll, beforeAll, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { type CellDatabase, createTwoCells, writeCellsFile } from "../support/cells.ts";
import { Customer, type CustomerApp, startCustomerApp, tokenOf } from "../support/customer.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const folder = createTemporaryFolder("page-cells");
let cells: readonly [CellDatabase, CellDatabase];
let app: CustomerApp;

beforeAll(async () => {
  cells = await createTwoCells();
  const env = { DATABASE_URL: "", VX_CELLS: writeCellsFile(folder.path, cells) };
  app = await startCustomerApp({ ...env, VX_SIGN_UP: "open", VX_SIGN_UP_CREDIT: "1" }, cells[0]);
});
afterAll(async () => {
  await app.stop();
  for (const cell of cells) await cell.drop();
  folder.remove();
});

test("a person signs up, is removed, does not return by a sign-up, and joins again by an invitation", async () => {
  let founded: Awaited<ReturnType<typeof Customer.signUp>>;
  let n = 0;
  do founded = await Customer.signUp(app, `founder${n++}@example.com`);
  while (laneOfId(founded.accountId) < 512);
  const { customer: founder, accountId } = founded;
  expect(await founder.do("GetAccount", {}, accountId)).toMatchObject({ balanceMicros: "1000000" });
  expect((await founder.do("SignUp", { name: "Again" })).accountId).toBe(accountId);
  const invite = async (by: Customer, role: string) => tokenOf((await by.do("CreateInvitation", { role }, accountId)).url);
  const second = await Customer.signIn(app, "second@example.com");
  await second.do("AcceptInvitation", { token: await invite(founder, "owner") });
  const { personId } = await founder.do("GetSession");
  const links = () => cells[0].owner`
    SELECT FROM vx.person_accounts WHERE person_id = ${String(personId)} AND account_id = ${accountId}`;
  await second.do("RemoveMember", { personId: personId ?? "" }, accountId);
  expect(await links()).toHaveLength(0);
  expect((await founder.do("SignUp", { name: "Another" })).accountId).not.toBe(accountId);
  await founder.do("AcceptInvitation", { token: await invite(second, "viewer") });
  expect(await links()).toHaveLength(1);
  expect((await founder.do("GetSession")).accounts).toContainEqual(expect.objectContaining({ id: accountId, role: "viewer" }));
});

test("the links of an operator are void in each cell once the revocation is acknowledged", async () => {
  const { operator, secret } = await operatorOf(app).createOperator({ name: "leaving", role: "finance" });
  const urls = [];
  for (const matches of [(lane: number) => lane < 512, (lane: number) => lane >= 512]) {
    let accountId: string;
    do accountId = (await operatorOf(app).createAccount({ name: "invited" })).account?.id ?? "";
    while (!matches(laneOfId(accountId)));
    urls.push((await operatorOf(app, secret).createInvitation({ accountId, role: "billing", reason: "r" })).url);
  }
  await operatorOf(app).revokeOperator({ operatorId: operator?.id ?? "" });
  const person = await Customer.signIn(app, "invited@example.com");
  for (const url of urls) expect(await person.fail("AcceptInvitation", { token: tokenOf(url) })).toBe("403 invalid_invitation");
});
