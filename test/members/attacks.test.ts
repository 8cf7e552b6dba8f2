import { type DescMethod, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { fingerprintOf } from "../../src/domain/credentials.ts";
import { LANE_COUNT } from "../../src/domain/lane.ts";
import { sendJson } from "../rest/send-json.ts";
import { startTestApp } from "../support/app.ts";
import { BrowserJar } from "../support/browser-jar.ts";
import {
  Customer,
  type CustomerApp,
  callbackOf,
  memberMethods,
  memberPath,
  memberPathOf,
  tokenOf,
  useCustomerApp,
} from "../support/customer.ts";
import { dumpTables } from "../support/database.ts";
import { useOperator } from "../support/fixtures.ts";
import { CLIENT } from "../support/identity-provider.ts";
import { sendHttp1, sendHttp2 } from "../support/raw.ts";

const CREDIT_MICROS = 1_000_000n;
const SETTINGS = { VX_SIGN_UP: "open", VX_SIGN_UP_CREDIT: "1", VX_SIGN_UP_PLAN: "pro" };
const app = useCustomerApp({ ...SETTINGS, VX_LOG_LEVEL: "trace" });
const operator = useOperator(app);
/** Of an event that the tests do not cause: nothing is delivered. */
const UNSENT = "account.suspended";
const unary = memberMethods.filter(({ methodKind }) => methodKind === "unary");

const newOwner = () => Customer.signUp(app);

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
  const HOSTS = [
    { "x-forwarded-host": "evil.example" },
    { forwarded: "host=evil.example" },
    { "x-original-url": "https://evil.example" },
  ];

  test("of the sign-in lead to the provider and back to the page, whatever the address and the headers say", async () => {
    const requests = [
      // Each name once, and each address.
      ...NAMES.map((name, number) => ({ query: `?${name}=${EVIL[number % EVIL.length]}`, headers: {} })),
      ...HOSTS.map((headers) => ({ query: "", headers })),
    ];
    for (const { query, headers } of requests) {
      const answer = await sendHttp1(app.url, { method: "GET", path: `/account/auth/sign-in${query}`, headers });
      const target = new URL(answer.headers.location ?? "");
      expect([query, headers, answer.status, target.origin, target.searchParams.get("redirect_uri")]).toEqual([
        ...[query, headers, 303, app.provider.issuer, callbackOf(app)],
      ]);
    }
    for (const evil of EVIL) {
      const before = ["/account/auth/sign-in/", "/account/", "/account/auth/callback/", evil.startsWith("/") ? "" : "/"];
      for (const path of [...before.map((start) => `${start}${evil}`), `/${evil}/account`]) {
        // HTTP/2 sends the path as it is.
        const { headers } = await sendHttp2(app.url, { method: "GET", path });
        expect([path, headers.location]).toEqual([path, undefined]);
      }
    }
  });

  test("after the sign-in lead to the page, with any other parameters of the callback", async () => {
    for (const evil of EVIL) {
      const browser = new BrowserJar();
      const returned = await browser.follow(`${app.url}/account/auth/sign-in`, callbackOf(app));
      const answer = await browser.get(`${returned}&next=${evil}&return_to=${evil}#${evil}`);
      expect([evil, answer.status, answer.headers.location]).toEqual([evil, 303, "/account"]);
    }
  });

  test.each(["callback?%", "callback?code=%ff&state=%00", "callback?["])("to an invalid address %s fail", async (path) => {
    const headers = { cookie: `vx_sign_in=vxs_${"a".repeat(32)}` };
    const { status } = await sendHttp1(app.url, { method: "GET", path: `/account/auth/${path}`, headers });
    expect(status).toBeLessThan(500);
  });
});

describe("requests that another page can cause", () => {
  const TYPES = [
    ...["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json"],
    ...["application/proto", "application/connect+json", "application/grpc-web+proto", "application/grpc"],
  ];
  /** What differs from a request of the page: pages of other sites and of sibling hosts, old browsers, forms of the page itself. */
  const CHANGES: Record<string, string | undefined>[] = [
    { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    { origin: "https://evil.example" },
    { origin: "null", "sec-fetch-site": "cross-site" },
    { origin: undefined, "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
    { origin: undefined, "sec-fetch-site": undefined },
    { "connect-protocol-version": undefined },
  ];

  test("do nothing: each method, with each content type", async () => {
    const { customer, accountId } = await newOwner();
    const marks = [accountId, await customer.personId()];
    const before = await rowsAbout(marks);
    expect(before.length).toBeGreaterThan(5);
    // The first method gets each content type with each change, every other method two of these pairs.
    const pairs = TYPES.flatMap((type) => CHANGES.map((change) => ({ "content-type": type, ...change })));
    for (const [number, { name }] of memberMethods.entries()) {
      const own =
        number === 0 ? pairs : [pairs[(number * 9) % pairs.length], { ...pairs[number % pairs.length], ...CHANGES.at(-1) }];
      for (const headers of own)
        expect([name, headers, await refuses(customer, name, accountId, headers)]).toEqual([name, headers, true]);
    }
    expect(await rowsAbout(marks)).toEqual(before);
  });

  test("with a GET do nothing either", async () => {
    const { customer, accountId } = await newOwner();
    const headers = { cookie: customer.cookie, "x-vx-account": accountId, "sec-fetch-site": "cross-site" };
    for (const method of memberMethods) {
      const path = `${memberPathOf(method)}?connect=v1&encoding=json&message=%7B%7D`;
      const { status } = await sendHttp1(app.url, { method: "GET", path, headers });
      expect([path, status]).toEqual([path, expect.toBeOneOf([401, 405, 415])]);
    }
  });

  /** Streams and gRPC have their status in the body or in a header. */
  async function refuses(customer: Customer, method: string, accountId: string, headers = {}): Promise<boolean> {
    const { status, headers: answered, text } = await customer.send(method, "{}", accountId, headers);
    const isInText = /"unauthenticated"|grpc-status: ?16|UNSUPPORTED_MEDIA_TYPE/i.test(text);
    return [401, 415].includes(status) || answered["grpc-status"] === "16" || isInText;
  }
});

describe("a session", () => {
  test("is accepted only as one cookie of its name with the exact token", async () => {
    const [{ customer, accountId }, other] = [await newOwner(), await newOwner()];
    const { cookie: own } = customer;
    const [name, token = ""] = own.split("=");
    const guesses = [fingerprintOf(token), token.slice(0, -1), `${token}x`, token.toUpperCase(), "", "vxs_"];
    const pairs = [`${own}; ${other.customer.cookie}`, `${other.customer.cookie}; ${own}`, `${own}; ${own}`];
    for (const cookie of [...pairs, ...guesses.map((guess) => `${name}=${guess}`)])
      expect(await customer.fail("GetAccount", {}, accountId, { cookie })).toBe("401 invalid_session");
  });

  test("of a removed member, of one with another role and of a closed account has the rights of now", async () => {
    const { customer: owner, accountId } = await newOwner();
    const member = await owner.admit("owner", accountId);
    const personId = await member.personId();
    await owner.do("SetMemberRole", { personId, role: "viewer" }, accountId);
    expect(await member.fail("CreateKey", { name: "x" }, accountId)).toBe("403 insufficient_role");
    await member.do("GetAccount", {}, accountId);
    await owner.do("RemoveMember", { personId }, accountId);
    expect(await member.fail("GetAccount", {}, accountId)).toBe("404 not_found");
    await operator.closeAccount({ accountId, reason: "r", balance: "written_off" });
    for (const method of ["GetAccount", "ListEntries", "ListMembers", "ListActivity", "GetStatement"])
      expect(await owner.fail(method, { month: "2026-01" }, accountId)).toBe("404 not_found");
    expect(await owner.do("GetSession")).not.toHaveProperty("accounts");
  });

  test("that watches events loses them when the member is removed, and when the session ends", async () => {
    const { customer: owner, accountId } = await newOwner();
    const [removed, ended] = [await owner.admit("viewer", accountId), await owner.admit("viewer", accountId)];
    const streams = [removed, ended].map(({ cookie }) => {
      const { origin } = new URL(app.url);
      const page = {
        origin,
        "sec-fetch-site": "same-origin",
        "connect-protocol-version": "1",
        cookie,
        "x-vx-account": accountId,
      };
      const headers = { ...page, "content-type": "application/connect+json" };
      const body = Buffer.from("\0\0\0\0\u0002{}");
      return fetch(`${app.url}${memberPath("WatchEvents")}`, { method: "POST", headers, body });
    });
    await Promise.all(streams);
    await owner.do("RemoveMember", { personId: await removed.personId() }, accountId);
    await ended.do("EndSession");
    await owner.do("CreateKey", { name: "after the removal" }, accountId);
    for (const stream of streams) expect(await (await stream).text()).not.toContain("key.created");
  });
});

describe("invitations", () => {
  test("cannot be guessed", async () => {
    const { customer: owner, accountId } = await newOwner();
    const token = await owner.invite("owner", accountId);
    const thief = await Customer.signIn(app);
    for (const end of ["", "0", "x", "xx"])
      expect(await thief.fail("AcceptInvitation", { token: token.slice(0, -2) + end })).toBe("403 invalid_invitation");
    expect(await owner.do("ListMembers", {}, accountId)).toMatchObject({ members: [{ role: "owner" }] });
    await thief.do("AcceptInvitation", { token });
  });

  test("for an address are for who has it verified now", async () => {
    const { customer: owner, accountId } = await newOwner();
    const email = "victim@example.com";
    const token = await owner.invite("owner", accountId, email);
    const signIn = (subject: string, address: string, emailVerified = true) =>
      Customer.signInAtProvider(app, address, { subject, emailVerified });
    const [unverified, former, lost] = [await signIn("1", email, false), await signIn("2", email), await signIn("3", email)];
    // They had the address, and have another one or none by now.
    await signIn("2", "other@example.com");
    await signIn("3", email, false);
    for (const attacker of [unverified, former, lost])
      expect(await attacker.fail("AcceptInvitation", { token })).toBe("403 invalid_invitation");
    expect(await lost.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
    await (await signIn("victim", email.toUpperCase())).do("AcceptInvitation", { token });
  });
});

describe("the starting credit", () => {
  test("is not given to an address again: the same subject at another provider is another person", async () => {
    const { customer, accountId } = await newOwner();
    const other: CustomerApp = { ...app, provider: Object.create(app.provider, { issuer: { value: "https://other.example" } }) };
    const twin = await Customer.signIn(other, customer.email);
    expect(await twin.do("GetSession")).not.toHaveProperty("accounts");
    expect(await twin.fail("GetAccount", {}, accountId)).toBe("404 not_found");
    expect(await twin.personId()).not.toBe(await customer.personId());
    expect(await creditOf((await twin.do("SignUp", { name: "Twin" })).accountId)).toBe(0n);
  });

  test("is given once to a person and to an address, at sign-ups at once over two servers: one and three accounts", async () => {
    const client = { VX_CUSTOMER_OIDC_CLIENT_ID: CLIENT.id, VX_CUSTOMER_OIDC_CLIENT_SECRET: CLIENT.secret };
    const env = { ...SETTINGS, ...client, VX_CUSTOMER_OIDC_ISSUER: app.provider.issuer };
    const server = await startTestApp({ database: app.database, env });
    const second = { ...server, provider: app.provider };
    try {
      const one = await Customer.signIn(app);
      const both = [one, one.at(second)] as const;
      const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => both[n % 2 ? 1 : 0].do("SignUp", { name: `${n}` })));
      const [accountId, ...others] = new Set(answers.map((answer) => answer.accountId));
      expect(others).toEqual([]);
      expect(await creditOf(accountId)).toBe(CREDIT_MICROS);

      const crowd: Customer[] = [];
      for (let n = 0; n < 10; n++) {
        const email = n % 3 ? "crowd@example.com" : "CROWD@EXAMPLE.COM";
        crowd.push((await Customer.signInAtProvider(app, email, { subject: `crowd ${n}` })).at(n % 2 ? app : second));
      }
      const outcomes = await Promise.all(crowd.map((person) => person.call("SignUp", { name: "Crowd" })));
      const ids = outcomes.filter(({ status }) => status === 200).map(({ body }) => body.accountId);
      expect(new Set(ids).size).toBe(3);
      expect(outcomes.filter(({ status }) => status === 403)).toHaveLength(7);
      const credits = await Promise.all(ids.map(creditOf));
      expect(credits.reduce((sum, credit) => sum + credit, 0n)).toBe(CREDIT_MICROS);
    } finally {
      await server.stop();
    }
  });

  async function creditOf(accountId: unknown): Promise<bigint> {
    const { entries } = await operator.listLedgerEntries({ accountId: String(accountId) });
    return entries.reduce((sum, { amountMicros }) => sum + amountMicros, 0n);
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

  const unaryBut = (names: RegExp) => unary.filter(({ name }) => !names.test(name));

  test.each(["viewer", "developer", "billing"])(
    "leaves a member with the role %s that role, and its keys its scopes",
    async (role) => {
      const { customer: owner, accountId } = await newOwner();
      const member = await owner.admit(role, accountId);
      const { apiKey } = await owner.do("CreateKey", { name: "theirs", scopes: ["billing", "generate"] }, accountId);
      const { id: keyId } = apiKey as { id: string };
      const scopes = ["generate", "read", "keys", "webhooks", "billing"];
      const wanted = { personId: await member.personId(), role: "owner", scopes, keyId, accountId, updateMask: "scopes" };
      for (const method of unaryBut(/^(LeaveAccount|RevokeKey|RemoveMember|EndSession)$/))
        await member.call(method.name, requestOf(method, { ...wanted, name: "greedy", email: "" }), accountId);
      expect((await owner.do("ListMembers", {}, accountId)).members).toMatchObject([{ role: "owner" }, { role }]);
      expect(await owner.do("ListInvitations", {}, accountId)).not.toHaveProperty("invitations");
      const keys = (await owner.do("ListKeys", {}, accountId)).apiKeys as { name: string; scopes: string[] }[];
      for (const key of keys) if (key.name !== "theirs") expect(key.scopes).not.toContain("billing");
      expect(await owner.do("GetKey", { keyId }, accountId)).toEqual({ apiKey });
    },
  );

  test("answers ids that are none with an error of the caller", async () => {
    const { customer: owner, accountId } = await newOwner();
    const prefixes = ["", "acct_", "key_", "inv_", "sinv_"];
    const wellFormed = prefixes.map((prefix, place) => `${prefix}${"zi0".charAt(place % 3).repeat(26)}`);
    const malformed = ["", "'", "%00", "../..", "é", "\ud83d\ude00"];
    let turn = 0;
    for (const method of unaryBut(/^(LeaveAccount|EndSession)$/)) {
      const fields = method.input.fields.filter(({ name }) => /(^|_)(id|token|after|invitation)$/.test(name));
      // The calls of a session are bounded.
      const session = await Customer.signIn(app, owner.email);
      for (const { localName } of fields) {
        const secret = /token|invitation/.test(localName) ? `.vxs_${"a".repeat(32)}` : "";
        // Two malformed ones in turn, with each prefix.
        const wrong = [turn, turn + 1].map((at) => `${prefixes[at % prefixes.length]}${malformed[at % malformed.length]}`);
        turn += 2;
        for (const text of [...wellFormed, ...wrong]) {
          const value = `${text}${secret}`;
          const { status } = await session.call(method.name, { [localName]: value, name: "x", role: "viewer" }, accountId);
          expect([method.name, localName, value, status < 429 || status === 501]).toEqual([method.name, localName, value, true]);
        }
      }
    }
  });

  test("neither shows nor changes what belongs to another account of the person, whose ids it gets", async () => {
    const { customer: owner, accountId } = await newOwner();
    const mark = "belongs-to-the-other";
    const other = await newOwner();
    await owner.do("AcceptInvitation", { token: await other.customer.invite("viewer", other.accountId) });
    // biome-ignore lint/suspicious/noExplicitAny: the responses of several methods
    const foreign = (method: string, request: JsonObject = {}): Promise<any> =>
      other.customer.do(method, request, other.accountId);
    await foreign("RenameAccount", { name: mark });
    const { apiKey, secret } = await foreign("CreateKey", { name: mark });
    const url = `https://example.com/${mark}`;
    const { webhook } = await foreign("CreateWebhook", { url, description: mark, types: [UNSENT] });
    const { limit } = await foreign("SetLimit", { limit: { metric: "cost", window: "day", amount: "123456" } });
    const { invitation } = await foreign("CreateInvitation", { role: "viewer", email: `${mark}@example.com` });
    const body = { model: "vx-sandbox-small", messages: [{ role: "user", content: "hi" }], user: mark };
    const generation = await sendJson(app.url, { verb: "POST", path: "/v1/generate", secret, body });
    const { events } = await foreign("ListEvents");
    const ids = {
      keyId: apiKey.id,
      webhookId: webhook.id,
      limitId: limit.id,
      invitationId: invitation.id,
      personId: await other.customer.personId(),
      sessionId: (await foreign("ListSessions")).sessions[0].id,
      eventId: events[0].id,
      after: "",
      id: (generation.body as { id: string }).id,
      ...{ role: "viewer", name: "stolen", state: "paused", overlapSeconds: 0, month: new Date().toISOString().slice(0, 7) },
    };
    expect(Object.values(ids)).not.toContain(undefined);
    const marks = [mark, other.accountId, ids.personId];
    const before = await rowsAbout(marks, accountId);
    expect(before.length).toBeGreaterThan(15);
    for (const method of unaryBut(/^(LeaveAccount|EndSession|GetSession)$/)) {
      const answer = await owner.call(method.name, requestOf(method, ids), accountId);
      expect([method.name, JSON.stringify(answer.body)]).toEqual([method.name, expect.not.stringContaining(mark)]);
    }
    await owner.do("EndSession", { sessionId: ids.sessionId });
    expect(await rowsAbout(marks, accountId)).toEqual(before);
    await foreign("GetSession");
  });
});

test("no token, code, cookie or key is in the logs or in the database", async () => {
  const browser = new BrowserJar();
  Object.assign(app.provider.behaviour, { subject: "careful", email: "careful@example.com", emailVerified: true });
  const started = await browser.get(`${app.url}/account/auth/sign-in`);
  const signInCookie = browser.header(app.url).split("=")[1];
  const { searchParams: authorization } = new URL(started.headers.location ?? "");
  const returned = await browser.follow(started.headers.location ?? "", callbackOf(app));
  await browser.get(returned);
  const customer = new Customer(app, "", browser.header(app.url));
  const accountId = String((await customer.do("SignUp", { name: "Careful" })).accountId);
  const invitation = await customer.invite("viewer", accountId);
  await customer.fail("AcceptInvitation", { token: `${invitation}x` });
  const view = await operator.viewCustomerPage({ accountId, reason: "r" });
  const secrets = {
    "the cookie of the sign-in": signInCookie,
    ...Object.fromEntries(["state", "nonce", "code_challenge"].map((name) => [name, authorization.get(name)])),
    "the code": new URL(returned).searchParams.get("code"),
    "the session": customer.cookie.split("=")[1],
    "the key": (await customer.do("CreateKey", { name: "k" }, accountId)).secret,
    "the key of the playground": (await customer.do("CreatePlaygroundKey", {}, accountId)).secret,
    "the invitation": invitation.split(".")[1],
    "the link to the page": tokenOf(view.url),
  };
  // A second use of the code fails, and is logged.
  await browser.get(returned);
  const { pathname, search } = new URL(returned);
  await sendHttp1(app.url, { method: "GET", path: pathname + search });

  const [log, dump] = [app.logText(), await dumpTables(app.database)];
  expect(log).toMatch(/sign-in failed/);
  for (const [name, secret] of Object.entries(secrets)) {
    const value = String(secret);
    expect(value.length, name).toBeGreaterThan(20);
    for (const form of [value, Buffer.from(value).toString("hex"), Buffer.from(value).toString("base64")])
      expect([name, log.includes(form), dump.includes(form)]).toEqual([name, false, false]);
  }
});
