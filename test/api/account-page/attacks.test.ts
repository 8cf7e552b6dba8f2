import { type DescMethod, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AccountService } from "../../../gen/vx/account/v1/account_pb.js";
import { fingerprintOf } from "../../../src/domain/credentials.ts";
import { LANE_COUNT } from "../../../src/domain/lane.ts";
import { startTestApp } from "../../support/app.ts";
import { BrowserJar } from "../../support/browser-jar.ts";
import { Customer, callbackOf, tokenOf, useCustomerApp } from "../../support/customer.ts";
import { dumpTables } from "../../support/database.ts";
import { operatorOf } from "../../support/fixtures.ts";
import { CLIENT, IdentityProvider } from "../../support/identity-provider.ts";
import { sendHttp1, sendHttp2 } from "../../support/raw.ts";

const CREDIT_MICROS = 1_000_000n;
const SETTINGS = { VX_SIGN_UP: "open", VX_SIGN_UP_CREDIT: "1", VX_SIGN_UP_PLAN: "pro" };
const app = useCustomerApp({ ...SETTINGS, VX_LOG_LEVEL: "trace" });
/** Of an event that the tests do not cause: nothing is delivered. */
const UNSENT = "account.suspended";
let people = 0;

const newOwner = () => Customer.signUp(app, `owner${++people}@example.com`);

async function join(owner: Customer, accountId: string, role: string): Promise<Customer> {
  const { url } = await owner.do("CreateInvitation", { role }, accountId);
  const person = await Customer.signIn(app, `member${++people}@example.com`);
  await person.do("AcceptInvitation", { token: tokenOf(url) });
  return person;
}

async function idOf(person: Customer): Promise<string> {
  return String((await person.do("GetSession")).personId);
}

/**
 * The rows with one of the marks, but not with the other text. The time of the last use of a session is no change: its rows begin with bytes.
 * The figures of an account follow its changes within a minute, so they are refreshed first.
 */
async function rowsAbout(marks: readonly string[], other?: string): Promise<string[]> {
  await app.database.owner`SELECT vx.refresh_figures(0::smallint, ${LANE_COUNT - 1}::smallint)`;
  const rows = (await dumpTables(app.database)).split("\n");
  return rows
    .filter((row) => marks.some((mark) => row.includes(mark)) && !row.startsWith('("\\\\x'))
    .filter((row) => other === undefined || !row.includes(other))
    .sort();
}

describe("redirects", () => {
  const EVIL = ["//evil.example", "https://evil.example", "/\\evil.example", "%2F%2Fevil.example", "https:%0d%0aevil.example"];
  const NAMES = ["next", "return_to", "return_url", "redirect_uri", "redirect", "url", "target_link_uri", "iss"];

  /** Whether a browser that follows it stays at the server or goes to the provider. */
  function isOwn(location: string): boolean {
    const { origin } = new URL(location, app.url);
    return origin === app.url || origin === app.provider.issuer;
  }

  test("of the sign-in lead to the provider and back to the page, whatever the address says", async () => {
    for (const [place, evil] of EVIL.entries()) {
      // Each name once, and each address.
      for (const name of NAMES.filter((_, number) => number % EVIL.length === place)) {
        const path = `/account/auth/sign-in?${name}=${evil}`;
        const { status, headers } = await sendHttp1(app.url, { method: "GET", path });
        expect([path, status, isOwn(headers.location ?? "")]).toEqual([path, 303, true]);
        const target = new URL(headers.location ?? "");
        expect([target.origin, target.searchParams.get("redirect_uri")]).toEqual([app.provider.issuer, callbackOf(app)]);
      }
      for (const path of [
        `/account/auth/sign-in/${evil}`,
        `/account/${evil}`,
        `/account/auth/callback/${evil}`,
        `/${evil}/account`,
        evil.startsWith("/") ? evil : `/${evil}`,
      ]) {
        // HTTP/2 sends the path as it is.
        const { headers } = await sendHttp2(app.url, { method: "GET", path });
        expect([path, headers.location]).toEqual([path, undefined]);
      }
    }
  });

  test("after the sign-in lead to the page, with any other parameters of the callback", async () => {
    for (const evil of EVIL) {
      Object.assign(app.provider.behaviour, { subject: "redirected", email: "redirected@example.com" });
      const browser = new BrowserJar();
      const returned = await browser.follow(`${app.url}/account/auth/sign-in`, callbackOf(app));
      const answer = await browser.get(`${returned}&next=${evil}&return_to=${evil}#${evil}`);
      expect([evil, answer.status, answer.headers.location]).toEqual([evil, 303, "/account"]);
    }
  });

  test("name no other host, whatever headers say", async () => {
    for (const headers of [
      { "x-forwarded-host": "evil.example" },
      { forwarded: "host=evil.example" },
      { "x-original-url": "https://evil.example" },
    ]) {
      const { headers: answer } = await sendHttp1(app.url, {
        method: "GET",
        path: "/account/auth/sign-in",
        headers,
      });
      expect(new URL(answer.location ?? "").searchParams.get("redirect_uri")).toBe(callbackOf(app));
    }
  });

  test("an address that is none is an error of the caller", async () => {
    for (const path of [
      "/account/auth/callback?%",
      "/account/auth/callback?code=%ff&state=%00",
      "/account/auth/callback?[",
      "http://[/account/auth/callback",
    ]) {
      const { status } = await sendHttp1(app.url, {
        method: "GET",
        path: path.startsWith("/") ? path : "/",
        headers: path.startsWith("/") ? { cookie: `vx_sign_in=vxs_${"a".repeat(32)}` } : {},
      });
      expect([path, status < 500]).toEqual([path, true]);
    }
  });
});

describe("requests that another page can cause", () => {
  const CONTENT_TYPES = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json",
    "application/proto",
    "application/connect+json",
    "application/grpc-web+proto",
    "application/grpc",
  ];
  /** What a browser sends along from a page of another site, of a sibling host, and from an old browser's form. */
  const ORIGINS = [
    { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    { origin: "null", "sec-fetch-site": "cross-site" },
    { origin: undefined, "sec-fetch-site": "same-site" },
    { origin: undefined, "sec-fetch-site": undefined },
  ];

  test("do nothing: each method, with each content type", async () => {
    const { customer, accountId } = await newOwner();
    const marks = [accountId, await idOf(customer)];
    const before = await rowsAbout(marks);
    expect(before.length).toBeGreaterThan(5);
    for (const [number, { name }] of AccountService.methods.entries()) {
      // The first method gets each content type from each origin, every other method gets one of each.
      for (const [place, type] of CONTENT_TYPES.entries()) {
        if (number > 0 && place !== number % CONTENT_TYPES.length) continue;
        for (const [turn, headers] of ORIGINS.entries()) {
          if (number > 0 && turn !== (number + (number >> 3)) % ORIGINS.length) continue;
          const isRefused = await refuses(customer, name, accountId, { ...headers, "content-type": type });
          expect([name, type, headers, isRefused]).toEqual([name, type, headers, true]);
        }
      }
      // Pages of the same origin are trusted, forms are not: they cannot send the header of the protocol.
      for (const type of CONTENT_TYPES.slice(number % 4, (number % 4) + 1)) {
        const headers = { "content-type": type, "connect-protocol-version": undefined };
        const isRefused = await refuses(customer, name, accountId, headers);
        expect([name, type, isRefused]).toEqual([name, type, true]);
      }
    }
    expect(await rowsAbout(marks)).toEqual(before);
  });

  test("with a GET do nothing either", async () => {
    const { customer, accountId } = await newOwner();
    for (const { name } of AccountService.methods) {
      const path = `/${AccountService.typeName}/${name}?connect=v1&encoding=json&message=%7B%7D`;
      const { status } = await sendHttp1(app.url, {
        method: "GET",
        path,
        headers: { cookie: customer.cookie, "x-vx-account": accountId, "sec-fetch-site": "cross-site" },
      });
      expect([name, status]).toEqual([name, expect.toBeOneOf([401, 405, 415])]);
    }
  });

  /** Streams and gRPC have their status in the body or in a header. */
  async function refuses(
    customer: Customer,
    method: string,
    accountId: string,
    headers: Record<string, string | undefined>,
  ): Promise<boolean> {
    const all: Record<string, string | undefined> = {
      "connect-protocol-version": "1",
      origin: app.url,
      "sec-fetch-site": "same-origin",
      cookie: customer.cookie,
      "x-vx-account": accountId,
      ...headers,
    };
    const sent = Object.entries(all).filter((header): header is [string, string] => header[1] !== undefined);
    const answer = await sendHttp1(app.url, {
      path: `/${AccountService.typeName}/${method}`,
      headers: Object.fromEntries(sent),
      body: "{}",
    });
    const text = answer.body.toString();
    return (
      [401, 415].includes(answer.status) ||
      answer.headers["grpc-status"] === "16" ||
      /"unauthenticated"|grpc-status: ?16|UNSUPPORTED_MEDIA_TYPE/i.test(text)
    );
  }
});

describe("a session", () => {
  test("is refused beside another cookie of its name, in each order", async () => {
    const { customer, accountId } = await newOwner();
    const other = await newOwner();
    for (const cookie of [
      `${customer.cookie}; ${other.customer.cookie}`,
      `${other.customer.cookie}; ${customer.cookie}`,
      `${customer.cookie}; ${customer.cookie}`,
    ])
      expect(await customer.fail("GetAccount", {}, accountId, { cookie })).toBe("401 invalid_session");
  });

  test("that was guessed is refused, and so is the fingerprint of one in the database", async () => {
    const { customer, accountId } = await newOwner();
    const [name, token = ""] = customer.cookie.split("=");
    for (const guess of [fingerprintOf(token), token.slice(0, -1), `${token}x`, token.toUpperCase(), "", "vxs_"])
      expect(await customer.fail("GetAccount", {}, accountId, { cookie: `${name}=${guess}` })).toBe("401 invalid_session");
  });

  test("of a removed member, of one with another role and of a closed account has the rights of now", async () => {
    const { customer: owner, accountId } = await newOwner();
    const member = await join(owner, accountId, "owner");
    const personId = await idOf(member);
    await owner.do("SetMemberRole", { personId, role: "viewer" }, accountId);
    expect(await member.fail("CreateKey", { name: "x" }, accountId)).toBe("403 insufficient_role");
    await member.do("GetAccount", {}, accountId);
    await owner.do("RemoveMember", { personId }, accountId);
    expect(await member.fail("GetAccount", {}, accountId)).toBe("404 not_found");
    await operatorOf(app).closeAccount({ accountId, reason: "r", balance: "written_off" });
    for (const method of ["GetAccount", "ListEntries", "ListMembers", "ListActivity", "GetStatement"])
      expect(await owner.fail(method, { month: "2026-01" }, accountId)).toBe("404 not_found");
    expect(await owner.do("GetSession")).not.toHaveProperty("accounts");
  });

  test("that watches events loses them when the member is removed, and when the session ends", async () => {
    const { customer: owner, accountId } = await newOwner();
    const [removed, ended] = [await join(owner, accountId, "viewer"), await join(owner, accountId, "viewer")];
    const streams = [removed, ended].map((member) => watch(member, accountId));
    await Promise.all(streams.map(({ opened }) => opened));
    await owner.do("RemoveMember", { personId: await idOf(removed) }, accountId);
    await ended.do("EndSession");
    await owner.do("CreateKey", { name: "after the removal" }, accountId);
    for (const { text } of streams) expect(await text).not.toContain("key.created");
  });

  function watch(member: Customer, accountId: string) {
    const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")]);
    const answer = fetch(`${app.url}/${AccountService.typeName}/WatchEvents`, {
      method: "POST",
      headers: {
        "content-type": "application/connect+json",
        "connect-protocol-version": "1",
        "x-vx-account": accountId,
        "sec-fetch-site": "same-origin",
        origin: app.url,
        cookie: member.cookie,
      },
      body,
    });
    return { opened: answer, text: answer.then((response) => response.text()) };
  }
});

describe("invitations", () => {
  test("cannot be guessed: a wrong secret is refused, and the attempts of a session are bounded", async () => {
    const { customer: owner, accountId } = await newOwner();
    const { url } = await owner.do("CreateInvitation", { role: "owner" }, accountId);
    const [id = "", secret = ""] = tokenOf(url).split(".");
    const thief = await Customer.signIn(app, `thief${++people}@example.com`);
    const counts = new Map<string, number>();
    // 1,300 attempts exceed the bound even if they fall into two minutes.
    for (let round = 0; round < 13 && !counts.has("429 rate_limit_exceeded"); round++) {
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, n) => {
          const guess = `${secret.slice(0, -3)}${String(round * 100 + n)
            .padStart(4, "0")
            .slice(-3)}`;
          return thief.fail("AcceptInvitation", { token: `${id}.${guess}` });
        }),
      );
      for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual(["403 invalid_invitation", "429 rate_limit_exceeded"]);
    expect(await owner.do("ListMembers", {}, accountId)).toMatchObject({ members: [{ role: "owner" }] });
    const guest = await Customer.signIn(app, `guest${++people}@example.com`);
    await guest.do("AcceptInvitation", { token: tokenOf(url) });
  });

  test("for an address are for who has it verified now", async () => {
    const { customer: owner, accountId } = await newOwner();
    const email = `victim${++people}@example.com`;
    const { url } = await owner.do("CreateInvitation", { role: "owner", email }, accountId);
    const token = tokenOf(url);
    const unverified = await signInAs("attacker 1", email, false);
    expect(await unverified.fail("AcceptInvitation", { token })).toBe("403 invalid_invitation");
    // It had the address, and has another one by now.
    const former = await signInAs("attacker 2", email, true);
    await signInAs("attacker 2", "other@example.com", true);
    expect(await former.fail("AcceptInvitation", { token })).toBe("403 invalid_invitation");
    const lost = await signInAs("attacker 3", email, true);
    await signInAs("attacker 3", email, false);
    expect(await lost.fail("AcceptInvitation", { token })).toBe("403 invalid_invitation");
    expect(await lost.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
    const victim = await signInAs("victim", email.toUpperCase(), true);
    await victim.do("AcceptInvitation", { token });
  });
});

/** Signs in with a subject of its own. */
async function signInAs(subject: string, email: string, emailVerified: boolean, at = app): Promise<Customer> {
  Object.assign(at.provider.behaviour, { subject, email, emailVerified });
  const browser = new BrowserJar();
  await browser.get(await browser.follow(`${at.url}/account/auth/sign-in`, callbackOf(at)));
  const customer = new Customer(at, email);
  customer.cookie = browser.header(at.url);
  return customer;
}

describe("another server with the same database", () => {
  test("and another provider knows other people: a subject of one is not that of the other", async () => {
    const { customer, accountId } = await newOwner();
    const provider = await IdentityProvider.start();
    const second = await secondServer(provider.issuer);
    provider.register(callbackOf(second));
    try {
      const at = { ...second, provider };
      const twin = await signInAs(`subject of ${customer.email}`, customer.email, true, at);
      expect(await twin.do("GetSession")).not.toHaveProperty("accounts");
      expect(await twin.fail("GetAccount", {}, accountId)).toBe("404 not_found");
      expect(await idOf(twin)).not.toBe(await idOf(customer));
      // The address got a starting credit already.
      const own = String((await twin.do("SignUp", { name: "Twin" })).accountId);
      expect(await creditOf(own)).toBe(0n);
    } finally {
      await second.stop();
      await provider.stop();
    }
  });

  test("gives one starting credit to a person, and one and three accounts to the people with an address, at 20 sign-ups at once", async () => {
    const second = await secondServer(app.provider.issuer);
    try {
      const one = await Customer.signIn(app, `greedy${++people}@example.com`);
      const elsewhere = new Customer({ ...second, provider: app.provider }, one.email);
      elsewhere.cookie = one.cookie;
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 ? one : elsewhere).do("SignUp", { name: `Account ${n}` })),
      );
      const [accountId, ...others] = new Set(answers.map((answer) => String(answer.accountId)));
      expect(others).toEqual([]);
      expect(await creditOf(accountId ?? "")).toBe(CREDIT_MICROS);

      const email = `crowd${++people}@example.com`;
      const crowd: Customer[] = [];
      for (let n = 0; n < 10; n++) {
        const person = await signInAs(`crowd ${n}`, n % 3 ? email : email.toUpperCase(), true);
        const at = new Customer(n % 2 ? app : { ...second, provider: app.provider }, email);
        at.cookie = person.cookie;
        crowd.push(at);
      }
      const outcomes = await Promise.all(crowd.map((person) => person.call("SignUp", { name: "Crowd" })));
      const ids = outcomes.filter(({ status }) => status === 200).map(({ body }) => String(body.accountId));
      expect(new Set(ids).size).toBe(3);
      expect(outcomes.filter(({ status }) => status === 403)).toHaveLength(7);
      const credits = await Promise.all(ids.map(creditOf));
      expect(credits.reduce((sum, credit) => sum + credit, 0n)).toBe(CREDIT_MICROS);
    } finally {
      await second.stop();
    }
  });

  async function creditOf(accountId: string): Promise<bigint> {
    const { entries } = await operatorOf(app).listLedgerEntries({ accountId });
    return entries.reduce((sum, { amountMicros }) => sum + amountMicros, 0n);
  }

  function secondServer(issuer: string) {
    const client = { VX_CUSTOMER_OIDC_CLIENT_ID: CLIENT.id, VX_CUSTOMER_OIDC_CLIENT_SECRET: CLIENT.secret };
    return startTestApp({
      database: app.database,
      env: { ...SETTINGS, ...client, VX_CUSTOMER_OIDC_ISSUER: issuer },
    });
  }
});

describe("every method", () => {
  /** A request with these values in the fields of their names, as far as the method has them. */
  function requestOf({ input }: DescMethod, values: Record<string, unknown>): JsonObject {
    const fields = input.fields.filter(({ localName }) => localName in values);
    return Object.fromEntries(
      fields.map((field) => {
        const value = values[field.localName] as string;
        if (field.fieldKind === "list") return [field.localName, Array.isArray(value) ? value : [value]];
        return [field.localName, field.scalar === ScalarType.BOOL ? true : value];
      }),
    ) as JsonObject;
  }

  const unary = AccountService.methods.filter(({ methodKind }) => methodKind === "unary");

  test.each(["viewer", "developer", "billing"])(
    "leaves a member with the role %s that role, and its keys its scopes",
    async (role) => {
      const { customer: owner, accountId } = await newOwner();
      const member = await join(owner, accountId, role);
      const personId = await idOf(member);
      const { apiKey } = await owner.do("CreateKey", { name: "theirs", scopes: ["billing", "generate"] }, accountId);
      const greedy = {
        personId,
        role: "owner",
        scopes: ["generate", "read", "keys", "webhooks", "billing"],
        keyId: (apiKey as { id: string }).id,
        name: "greedy",
        updateMask: "scopes",
        accountId,
        email: "",
      };
      for (const method of unary.filter(({ name }) => !/^(LeaveAccount|RevokeKey|RemoveMember|EndSession)$/.test(name)))
        await member.call(method.name, requestOf(method, greedy), accountId);
      expect((await owner.do("ListMembers", {}, accountId)).members).toMatchObject([{ role: "owner" }, { role }]);
      expect(await owner.do("ListInvitations", {}, accountId)).not.toHaveProperty("invitations");
      const { apiKeys } = await owner.do("ListKeys", {}, accountId);
      const scopes = (apiKeys as { name: string; scopes: string[] }[])
        .filter(({ name }) => name !== "theirs")
        .flatMap((key) => key.scopes);
      expect(scopes).not.toContain("billing");
      expect(await owner.do("GetKey", { keyId: greedy.keyId }, accountId)).toEqual({ apiKey });
    },
  );

  test("answers ids that are none with an error of the caller", async () => {
    const { customer: owner, accountId } = await newOwner();
    const prefixes = ["", "acct_", "key_", "inv_", "sinv_"];
    const wellFormed = prefixes.map((prefix, place) => `${prefix}${"zi0".charAt(place % 3).repeat(26)}`);
    const malformed = ["", "'", "%00", "../..", "é", "\ud83d\ude00"].map(
      (text, number) => `${prefixes[number % prefixes.length]}${text}`,
    );
    for (const method of unary.filter(({ name }) => !/^(LeaveAccount|EndSession)$/.test(name))) {
      const fields = method.input.fields.filter(({ name }) => /(^|_)(id|token|after|invitation)$/.test(name));
      if (fields.length === 0) continue;
      // The calls of a session are bounded.
      const session = await Customer.signIn(app, owner.email);
      for (const { localName } of fields) {
        const secret = /token|invitation/.test(localName) ? `.vxs_${"a".repeat(32)}` : "";
        for (const text of [...wellFormed, ...malformed]) {
          const value = `${text}${secret}`;
          const { status } = await session.call(method.name, { [localName]: value, name: "x", role: "viewer" }, accountId);
          expect([method.name, localName, value, status < 429 || status === 501]).toEqual([method.name, localName, value, true]);
        }
      }
    }
  });

  test("neither shows nor changes what belongs to another account, whose ids it gets", async () => {
    const { customer: owner, accountId } = await newOwner();
    const mark = "belongs-to-the-other";
    const other = await newOwner();
    const foreign = (method: string, request: JsonObject = {}) => other.customer.do(method, request, other.accountId);
    await foreign("RenameAccount", { name: mark });
    const { apiKey, secret } = await foreign("CreateKey", { name: mark });
    const { webhook } = await foreign("CreateWebhook", {
      url: `https://example.com/${mark}`,
      description: mark,
      types: [UNSENT],
    });
    const { limit } = await foreign("SetLimit", {
      limit: { metric: "cost", window: "day", amount: "123456" },
    });
    const { invitation } = await foreign("CreateInvitation", {
      role: "viewer",
      email: `${mark}@example.com`,
    });
    const reply = await fetch(`${app.url}/v1/generate`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "vx-sandbox-small",
        messages: [{ role: "user", content: "hi" }],
        user: mark,
      }),
    });
    const generation = (await reply.json()) as { id: string };
    const { entries } = await foreign("ListEntries");
    const { events } = await foreign("ListEvents");
    const idIn = (value: unknown) => (value as { id: string }).id;
    const ids = {
      keyId: idIn(apiKey),
      webhookId: idIn(webhook),
      limitId: idIn(limit),
      invitationId: idIn(invitation),
      personId: await idOf(other.customer),
      sessionId: ((await other.customer.do("ListSessions")).sessions as { id: string }[])[0]?.id,
      eventId: (events as { id: string }[])[0]?.id,
      after: "",
      id: generation.id ?? idIn((entries as unknown[])[0]),
      role: "viewer",
      name: "stolen",
      state: "paused",
      overlapSeconds: 0,
      month: new Date().toISOString().slice(0, 7),
    };
    const marks = [mark, other.accountId, ids.personId];
    const before = await rowsAbout(marks, accountId);
    expect(before.length).toBeGreaterThan(15);
    for (const method of unary.filter(({ name }) => name !== "LeaveAccount" && name !== "EndSession")) {
      const { body } = await owner.call(method.name, requestOf(method, ids), accountId);
      expect([method.name, JSON.stringify(body)]).toEqual([method.name, expect.not.stringContaining(mark)]);
    }
    await owner.do("EndSession", { sessionId: ids.sessionId ?? "" });
    expect(await rowsAbout(marks, accountId)).toEqual(before);
    await other.customer.do("GetSession");
  });
});

test("no token, code, cookie or key is in the logs or in the database", async () => {
  const secrets = new Map<string, string>();
  const browser = new BrowserJar();
  Object.assign(app.provider.behaviour, {
    subject: "careful",
    email: "careful@example.com",
    emailVerified: true,
  });
  const started = await browser.get(`${app.url}/account/auth/sign-in`);
  secrets.set("the cookie of the sign-in", browser.header(app.url).split("=")[1] ?? "");
  const authorization = new URL(started.headers.location ?? "").searchParams;
  for (const name of ["state", "nonce", "code_challenge"]) secrets.set(name, authorization.get(name) ?? "");
  const returned = await browser.follow(started.headers.location ?? "", callbackOf(app));
  secrets.set("the code", new URL(returned).searchParams.get("code") ?? "");
  await browser.get(returned);
  const customer = new Customer(app, "careful@example.com");
  customer.cookie = browser.header(app.url);
  secrets.set("the session", customer.cookie.split("=")[1] ?? "");
  const accountId = String((await customer.do("SignUp", { name: "Careful" })).accountId);
  const { secret } = await customer.do("CreateKey", { name: "k" }, accountId);
  secrets.set("the key", String(secret));
  const playground = await customer.do("CreatePlaygroundKey", {}, accountId);
  secrets.set("the key of the playground", String(playground.secret));
  const webhook = await customer.do("CreateWebhook", { url: "https://example.com/hook", types: [UNSENT] }, accountId);
  const { url } = await customer.do("CreateInvitation", { role: "viewer" }, accountId);
  secrets.set("the invitation", tokenOf(url).split(".")[1] ?? "");
  await customer.fail("AcceptInvitation", { token: `${tokenOf(url)}x` });
  const view = await operatorOf(app).viewCustomerPage({ accountId, reason: "r" });
  secrets.set("the link to the page", tokenOf(view.url));
  // A second use of the code fails, and is logged.
  await browser.get(returned);
  await sendHttp1(app.url, { method: "GET", path: new URL(returned).pathname + new URL(returned).search });
  expect(webhook).toHaveProperty("secret");

  const [log, dump] = [app.logText(), await dumpTables(app.database)];
  expect(log).toMatch(/sign-in failed/);
  for (const [name, value] of secrets) {
    expect([name, value.length > 20]).toEqual([name, true]);
    const forms = [value, Buffer.from(value).toString("hex"), Buffer.from(value).toString("base64")];
    for (const form of forms) {
      expect([name, log.includes(form)]).toEqual([name, false]);
      expect([name, dump.includes(form)]).toEqual([name, false]);
    }
  }
});
