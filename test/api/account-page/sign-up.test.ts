import { describe, expect, test } from "vitest";
import { startTestApp } from "../../support/app.ts";
import { BrowserJar } from "../../support/browser-jar.ts";
import { Customer, callbackOf, tokenOf, untilWaiting, useCustomerApp } from "../../support/customer.ts";
import { operatorOf } from "../../support/fixtures.ts";
import { CLIENT } from "../../support/identity-provider.ts";

const open = useCustomerApp({
  VX_SIGN_UP: "open",
  VX_SIGN_UP_PLAN: "pro",
  VX_SIGN_UP_CREDIT: "5",
  VX_SIGN_UP_CREDIT_DAYS: "30",
  VX_SIGN_UP_DOMAINS: "example.com,Example.ORG",
});
const invited = useCustomerApp({ VX_SIGN_UP: "invite" });
const closed = useCustomerApp();

describe("open sign-up", () => {
  test("a person signs up, once, and gets an account with the starting credit", async () => {
    const ada = await Customer.signIn(open, "ada@example.com");
    expect(await ada.do("GetSession")).toMatchObject({ email: "ada@example.com", canSignUp: true });
    const { accountId } = await ada.do("SignUp", { name: "Analytical Engines" });
    expect(await ada.do("GetSession")).toMatchObject({
      accounts: [{ id: accountId, name: "Analytical Engines", role: "owner" }],
    });
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
    expect((await again.do("GetAccount", {}, String(accountId))).balanceMicros).toBe("5000000");
    const profile = await operatorOf(open).getAccount({ accountId: String(accountId) });
    expect(profile.account).toMatchObject({ email: "ada@example.com", name: "Analytical Engines" });
  });

  test("twenty simultaneous sign-ups of a person give one account and one credit", async () => {
    const bob = await Customer.signIn(open, "bob@example.com");
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => bob.do("SignUp", { name: `Account ${n}` })));
    const ids = new Set(answers.map(({ accountId }) => accountId));
    expect(ids.size).toBe(1);
    const [accountId] = ids;
    const { entries } = await operatorOf(open).listLedgerEntries({ accountId: String(accountId) });
    expect(entries.map(({ amountMicros }) => amountMicros)).toEqual([5_000_000n]);
  });

  test("an identity with the address of another one gets an account without the credit", async () => {
    const { accountId } = await Customer.signUp(open, "eve@example.com");
    open.provider.behaviour.subject = "another subject";
    const browser = new BrowserJar();
    const returned = await browser.follow(`${open.url}/account/auth/sign-in`, callbackOf(open));
    await browser.get(returned);
    const twin = new Customer(open, "eve@example.com");
    twin.cookie = browser.header(open.url);
    const second = String((await twin.do("SignUp", { name: "Twin" })).accountId);
    expect(second).not.toBe(accountId);
    expect((await twin.do("GetAccount", {}, second)).balanceMicros ?? "0").toBe("0");
  });

  test("an address with a tag gets the credit once with all others of its mailbox", async () => {
    const balances: unknown[] = [];
    for (const email of ["tag+1@example.com", "Tag@example.com", "tag+2+3@example.com", "tag@example.org"]) {
      const { customer, accountId } = await Customer.signUp(open, email);
      balances.push((await customer.do("GetAccount", {}, accountId)).balanceMicros ?? "0");
    }
    expect(balances).toEqual(["5000000", "0", "0", "5000000"]);
  });

  test("only verified addresses of the permitted domains sign up", async () => {
    const mallory = await Customer.signIn(open, "mallory@evil.example");
    expect((await mallory.do("GetSession")).canSignUp ?? false).toBe(false);
    expect(await mallory.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
    const unverified = await Customer.signIn(open, "carol@example.com", false);
    expect(await unverified.do("GetSession")).not.toHaveProperty("email");
    expect(await unverified.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
    const upper = await Customer.signIn(open, "Grace@EXAMPLE.org");
    await upper.do("SignUp", { name: "Grace" });
    const suffix = await Customer.signIn(open, "x@notexample.com");
    expect(await suffix.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
  });

  test("after the account was closed, a person signs up for another one, without the credit", async () => {
    const { customer, accountId } = await Customer.signUp(open, "closing@example.com");
    await operatorOf(open).closeAccount({ accountId, reason: "asked for it", balance: "written_off" });
    expect(await customer.do("GetSession")).not.toHaveProperty("accounts");
    const second = String((await customer.do("SignUp", { name: "Second" })).accountId);
    expect(second).not.toBe(accountId);
    expect((await customer.do("GetAccount", {}, second)).balanceMicros ?? "0").toBe("0");
  });

  test("a removed founder does not return by a sign-up that was repeated before the removal", async () => {
    const { customer: founder, accountId } = await Customer.signUp(open, "founder@example.com");
    const { url } = await founder.do("CreateInvitation", { role: "owner" }, accountId);
    const second = await Customer.signIn(open, "second@example.com");
    await second.do("AcceptInvitation", { token: tokenOf(url) });
    const { personId } = await founder.do("GetSession");
    const { calls } = await open.database.owner.begin(async (sql) => {
      await sql`SELECT FROM vx.lanes WHERE lane = vx.lane_of(${accountId}) FOR UPDATE`;
      const removal = second.fail("RemoveMember", { personId: personId ?? "" }, accountId);
      await untilWaiting(open, "remove_member");
      const repetition = founder.fail("SignUp", { name: "Again" });
      await untilWaiting(open, "create_sign_up_account");
      return { calls: Promise.all([removal, repetition]) };
    });
    expect(await calls).toEqual(["200 ", "403 sign_up_refused"]);
    expect((await second.do("ListMembers", {}, accountId)).members).toMatchObject([{ email: second.email }]);
    expect((await founder.do("SignUp", { name: "Another" })).accountId).not.toBe(accountId);
  });

  test("the credit is that of the first sign-up: neither a raised one nor a suspension adds to it", async () => {
    const without = await startTestApp({
      database: open.database,
      env: {
        VX_SIGN_UP: "open",
        VX_CUSTOMER_OIDC_ISSUER: open.provider.issuer,
        VX_CUSTOMER_OIDC_CLIENT_ID: CLIENT.id,
        VX_CUSTOMER_OIDC_CLIENT_SECRET: CLIENT.secret,
      },
    });
    try {
      const customer = await Customer.signIn(open, "early@example.com");
      const early = new Customer({ ...without, provider: open.provider }, customer.email);
      early.cookie = customer.cookie;
      const accountId = String((await early.do("SignUp", { name: "Early" })).accountId);
      expect((await customer.do("SignUp", { name: "Early" })).accountId).toBe(accountId);
      await operatorOf(open).suspendAccount({ accountId, reason: "r" });
      expect((await customer.do("SignUp", { name: "Early" })).accountId).toBe(accountId);
      const { entries } = await operatorOf(open).listLedgerEntries({ accountId });
      expect(entries).toEqual([]);
    } finally {
      await without.stop();
    }
  });

  test("a person signs up for at most three accounts in 30 days, with all identities of a mailbox", async () => {
    const signUpAndLeave = async (email: string) => {
      const customer = await Customer.signIn(open, email);
      const { status, body } = await customer.call("SignUp", { name: "Short" });
      if (status === 200)
        await operatorOf(open).closeAccount({
          accountId: String(body.accountId),
          reason: "r",
          balance: "written_off",
        });
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
    const { customer, accountId } = await Customer.signUp(open, "key@example.com");
    const { secret, apiKey } = await customer.do("CreateKey", { name: "first" }, accountId);
    expect(apiKey).toMatchObject({ name: "first", scopes: ["generate", "read"] });
    const answer = await fetch(`${open.url}/v1/me`, { headers: { authorization: `Bearer ${secret}` } });
    expect(answer.status).toBe(200);
  });
});

describe("sign-up by invitation", () => {
  test("an invitation of an operator creates one account", async () => {
    const operator = operatorOf(invited);
    const { url } = await operator.createSignUpInvitation({ reason: "a new customer" });
    expect(url).toMatch(/\/account#\/sign-up\?token=sinv_[0-9a-z]{26}\.vxs_\w{32}$/);
    const ada = await Customer.signIn(invited, "ada@example.com");
    expect(await ada.fail("SignUp", { name: "Ada" })).toBe("403 invalid_invitation");
    const { accountId } = await ada.do("SignUp", { name: "Ada", invitation: tokenOf(url) });
    expect(accountId).toMatch(/^acct_/);
    const bob = await Customer.signIn(invited, "bob@example.com");
    expect(await bob.fail("SignUp", { name: "Bob", invitation: tokenOf(url) })).toBe("403 invalid_invitation");
  });

  test("an invitation with an address is only for that person; another id or secret does not work", async () => {
    const operator = operatorOf(invited);
    const first = await operator.createSignUpInvitation({ email: "Carol@Example.com", reason: "r" });
    const second = await operator.createSignUpInvitation({ reason: "r" });
    const dave = await Customer.signIn(invited, "dave@example.com");
    const invitation = tokenOf(first.url);
    expect(await dave.fail("SignUp", { name: "x", invitation })).toBe("403 invalid_invitation");
    const [id] = invitation.split(".");
    const [, secret] = tokenOf(second.url).split(".");
    for (const wrong of [`${id}.${secret}`, `${id}.`, `${id}`, "x", `${invitation}.x`])
      expect(await dave.fail("SignUp", { name: "x", invitation: wrong })).toBe("403 invalid_invitation");
    const carol = await Customer.signIn(invited, "carol@example.com");
    await carol.do("SignUp", { name: "Carol", invitation });
  });
});

describe("an invitation to sign up", () => {
  test.each<[string, (operatorId: string) => Promise<unknown>]>([
    ["was revoked", (operatorId) => operatorOf(invited).revokeOperator({ operatorId })],
    ["is a viewer now", (operatorId) => operatorOf(invited).setOperatorRole({ operatorId, role: "viewer" })],
  ])("of an operator who %s is void", async (what, withdraw) => {
    const { operator, secret } = await operatorOf(invited).createOperator({ name: what, role: "support" });
    const { url } = await operatorOf(invited, secret).createSignUpInvitation({ reason: "r" });
    const kept = await operatorOf(invited, secret).createSignUpInvitation({ reason: "r" });
    const person = await Customer.signIn(invited, `${what.replaceAll(" ", "-")}@example.com`);
    await person.do("SignUp", { name: "In time", invitation: tokenOf(kept.url) });
    await withdraw(operator?.id ?? "");
    const late = await Customer.signIn(invited, `late-${what.replaceAll(" ", "-")}@example.com`);
    expect(await late.fail("SignUp", { name: "Late", invitation: tokenOf(url) })).toBe("403 invalid_invitation");
  });
});

describe("without sign-up", () => {
  test("a person without an account can sign in and nothing else", async () => {
    const ada = await Customer.signIn(closed, "ada@example.com");
    expect(await ada.do("GetSession")).not.toHaveProperty("accounts");
    expect(await ada.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
    const { account } = await operatorOf(closed).createAccount({ name: "Other" });
    expect(await ada.fail("GetAccount", {}, account?.id)).toBe("404 not_found");
  });
});
