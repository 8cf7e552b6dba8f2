import { describe, expect, test } from "vitest";
import { startTestApp } from "../support/app.ts";
import { Customer, tokenOf, untilWaiting, useCustomerApp } from "../support/customer.ts";
import { type Operator, operatorOf, useOperator } from "../support/fixtures.ts";
import { CLIENT } from "../support/identity-provider.ts";

const open = useCustomerApp({
  VX_SIGN_UP: "open",
  VX_SIGN_UP_PLAN: "pro",
  VX_SIGN_UP_CREDIT: "5",
  VX_SIGN_UP_CREDIT_DAYS: "30",
  VX_SIGN_UP_DOMAINS: "example.com,Example.ORG",
});
const operator = useOperator(open);

const signUp = (email?: string) => Customer.signUp(open, email);
const balanceOf = async (customer: Customer, accountId: unknown) =>
  (await customer.do("GetAccount", {}, String(accountId))).balanceMicros ?? "0";
const REFUSED = "403 sign_up_refused";
const VOID = "403 invalid_invitation";

describe("open sign-up", () => {
  test("a person signs up, once, and gets an account with the starting credit", async () => {
    const ada = await Customer.signIn(open, "ada@example.com");
    expect(await ada.do("GetSession")).toMatchObject({ email: "ada@example.com", canSignUp: true });
    const { accountId } = await ada.do("SignUp", { name: "Analytical Engines" });
    const accounts = [{ id: accountId, name: "Analytical Engines", role: "owner" }];
    expect(await ada.do("GetSession")).toMatchObject({ accounts });
    const account = await ada.do("GetAccount", {}, String(accountId));
    const inThirtyDays = Date.now() + 30 * 86_400_000;
    expect(account).toMatchObject({
      id: accountId,
      plan: "pro",
      balanceMicros: "5000000",
      grants: [{ amountMicros: "5000000", promotional: true, expiresAt: expect.any(String) }],
    });
    expect(account.key).toBeUndefined();
    const [grant] = account.grants as { expiresAt: string }[];
    expect(Math.abs(Date.parse(grant?.expiresAt ?? "") - inThirtyDays)).toBeLessThanOrEqual(86_400_000);

    expect((await ada.do("SignUp", { name: "Again" })).accountId).toBe(accountId);
    const again = await Customer.signIn(open, "ada@example.com");
    expect(await balanceOf(again, accountId)).toBe("5000000");
    const profile = await operator.getAccount({ accountId: String(accountId) });
    expect(profile.account).toMatchObject({ email: "ada@example.com", name: "Analytical Engines" });
  });

  test("an address with a tag gets the credit once with all others of its mailbox", async () => {
    const balances: unknown[] = [];
    for (const email of ["tag+1@example.com", "Tag@example.com", "tag+2+3@example.com", "tag@example.org"]) {
      const { customer, accountId } = await signUp(email);
      balances.push(await balanceOf(customer, accountId));
    }
    expect(balances).toEqual(["5000000", "0", "0", "5000000"]);
  });

  test("only verified addresses of the permitted domains sign up", async () => {
    const mallory = await Customer.signIn(open, "mallory@evil.example");
    expect((await mallory.do("GetSession")).canSignUp ?? false).toBe(false);
    expect(await mallory.fail("SignUp", { name: "x" })).toBe(REFUSED);
    const unverified = await Customer.signIn(open, "carol@example.com", false);
    expect(await unverified.do("GetSession")).not.toHaveProperty("email");
    expect(await unverified.fail("SignUp", { name: "x" })).toBe(REFUSED);
    const upper = await Customer.signIn(open, "Grace@EXAMPLE.org");
    await upper.do("SignUp", { name: "Grace" });
    const suffix = await Customer.signIn(open, "x@notexample.com");
    expect(await suffix.fail("SignUp", { name: "x" })).toBe(REFUSED);
  });

  test("after the account was closed, a person signs up for another one, without the credit", async () => {
    const { customer, accountId } = await signUp();
    await operator.closeAccount({ accountId, reason: "asked for it", balance: "written_off" });
    expect(await customer.do("GetSession")).not.toHaveProperty("accounts");
    const second = String((await customer.do("SignUp", { name: "Second" })).accountId);
    expect(second).not.toBe(accountId);
    expect(await balanceOf(customer, second)).toBe("0");
  });

  test("a removed founder does not return by a sign-up that was repeated before the removal", async () => {
    const { customer: founder, accountId } = await signUp();
    const second = await founder.admit("owner", accountId);
    const personId = await founder.personId();
    const { calls } = await open.database.owner.begin(async (sql) => {
      await sql`SELECT FROM vx.lanes WHERE lane = vx.lane_of(${accountId}) FOR UPDATE`;
      const removal = second.fail("RemoveMember", { personId }, accountId);
      await untilWaiting(open, "remove_member");
      const repetition = founder.fail("SignUp", { name: "Again" });
      await untilWaiting(open, "create_sign_up_account");
      return { calls: Promise.all([removal, repetition]) };
    });
    expect(await calls).toEqual(["200 ", REFUSED]);
    expect((await second.do("ListMembers", {}, accountId)).members).toMatchObject([{ email: second.email }]);
    expect((await founder.do("SignUp", { name: "Another" })).accountId).not.toBe(accountId);
  });

  test("the credit is that of the first sign-up: neither a raised one nor a suspension adds to it", async () => {
    const client = { VX_CUSTOMER_OIDC_CLIENT_ID: CLIENT.id, VX_CUSTOMER_OIDC_CLIENT_SECRET: CLIENT.secret };
    const env = { VX_SIGN_UP: "open", VX_CUSTOMER_OIDC_ISSUER: open.provider.issuer, ...client };
    const without = await startTestApp({ database: open.database, env });
    try {
      const customer = await Customer.signIn(open);
      const early = customer.at({ ...without, provider: open.provider });
      const accountId = String((await early.do("SignUp", { name: "Early" })).accountId);
      expect((await customer.do("SignUp", { name: "Early" })).accountId).toBe(accountId);
      await operator.suspendAccount({ accountId, reason: "r" });
      expect((await customer.do("SignUp", { name: "Early" })).accountId).toBe(accountId);
      const { entries } = await operator.listLedgerEntries({ accountId });
      expect(entries).toEqual([]);
    } finally {
      await without.stop();
    }
  });

  test("a person signs up for at most three accounts in 30 days, with all identities of a mailbox", async () => {
    const signUpAndLeave = async (email: string) => {
      const customer = await Customer.signIn(open, email);
      const { status, body } = await customer.call("SignUp", { name: "Short" });
      if (status === 200) await operator.closeAccount({ accountId: String(body.accountId), reason: "r", balance: "written_off" });
      return status;
    };
    const emails = ["serial@example.com", "serial+1@example.com", "serial@example.com", "serial+2@example.com"];
    const statuses = [];
    for (const email of emails) statuses.push(await signUpAndLeave(email));
    expect(statuses).toEqual([200, 200, 200, 403]);
    await open.database.owner`
      UPDATE vx.starting_credits SET sign_ups = ARRAY(SELECT t - interval '31 days' FROM unnest(sign_ups) t)`;
    expect(await signUpAndLeave("serial+2@example.com")).toBe(200);
  });

  test.each([
    ["Ada@Example.com", "ada@example.com"],
    ["ada+x+y@example.com", "ada@example.com"],
    ["ada@example.com.", "ada@example.com"],
    ["a.da@example.com", "a.da@example.com"],
    ["A.d.a+x@googlemail.com.", "ada@gmail.com"],
    ["a.da@mail.gmail.com", "a.da@mail.gmail.com"],
    ['"a@b"@example.com', '"a@b"@example.com'],
  ])("the mailbox of %s is %s", async (email, mailbox) => {
    expect(await open.database.owner`SELECT vx.mailbox_of(${email}) AS mailbox`).toEqual([{ mailbox }]);
  });

  test("a first key is created and works", async () => {
    const { customer, accountId } = await signUp();
    const { secret, apiKey } = await customer.do("CreateKey", { name: "first" }, accountId);
    expect(apiKey).toMatchObject({ name: "first", scopes: ["generate", "read"] });
    const answer = await fetch(`${open.url}/v1/me`, { headers: { authorization: `Bearer ${secret}` } });
    expect(answer.status).toBe(200);
  });
});

describe("sign-up by invitation", () => {
  const app = useCustomerApp({ VX_SIGN_UP: "invite" });
  const inviting = useOperator(app);
  const invite = async (email = "", by: Operator = inviting) =>
    tokenOf((await by.createSignUpInvitation({ email, reason: "r" })).url);
  const accept = (person: Customer, invitation: string) => person.fail("SignUp", { name: "x", invitation });

  test("an invitation of an operator creates one account", async () => {
    const { url } = await inviting.createSignUpInvitation({ reason: "a new customer" });
    expect(url).toMatch(/\/account#\/sign-up\?token=sinv_[0-9a-z]{26}\.vxs_\w{32}$/);
    const ada = await Customer.signIn(app);
    expect(await ada.fail("SignUp", { name: "Ada" })).toBe(VOID);
    expect((await ada.do("SignUp", { name: "Ada", invitation: tokenOf(url) })).accountId).toMatch(/^acct_/);
    expect(await accept(await Customer.signIn(app), tokenOf(url))).toBe(VOID);
  });

  test("an invitation with an address is only for that person; another id or secret does not work", async () => {
    const [invitation, other] = [await invite("Carol@Example.com"), await invite()];
    const dave = await Customer.signIn(app);
    const [[id], [, secret]] = [invitation.split("."), other.split(".")];
    for (const wrong of [invitation, `${id}.${secret}`, `${id}.`, `${id}`, "x", `${invitation}.x`])
      expect(await accept(dave, wrong)).toBe(VOID);
    expect(await accept(await Customer.signIn(app, "carol@example.com"), invitation)).toBe("200 ");
  });

  test.each([
    ["was revoked", (operatorId: string) => inviting.revokeOperator({ operatorId })],
    ["is a viewer now", (operatorId: string) => inviting.setOperatorRole({ operatorId, role: "viewer" })],
  ])("an invitation of an operator who %s is void", async (name, withdraw) => {
    const created = await inviting.createOperator({ name, role: "support" });
    const by = operatorOf(app, created.secret);
    const [used, late] = [await invite("", by), await invite("", by)];
    expect(await accept(await Customer.signIn(app), used)).toBe("200 ");
    await withdraw(created.operator?.id ?? "");
    expect(await accept(await Customer.signIn(app), late)).toBe(VOID);
  });
});

describe("without sign-up", () => {
  const app = useCustomerApp();

  test("a person without an account can sign in and nothing else", async () => {
    const ada = await Customer.signIn(app);
    expect(await ada.do("GetSession")).not.toHaveProperty("accounts");
    expect(await ada.fail("SignUp", { name: "x" })).toBe(REFUSED);
    const { account } = await operatorOf(app).createAccount({ name: "Other" });
    expect(await ada.fail("GetAccount", {}, account?.id)).toBe("404 not_found");
  });
});
