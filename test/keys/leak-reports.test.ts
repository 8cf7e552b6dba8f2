import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { fingerprintOf, generateKey } from "../../src/domain/credentials.ts";
import { post, sendAnyJson } from "../support/any-json.ts";
import { startTestApp } from "../support/app.ts";
import { dumpTables } from "../support/database.ts";
import type { TestKey } from "../support/fixtures.ts";
import { createLeakReporter, leakKeysFile, sendReport, signedHeaders } from "../support/leak-reporter.ts";
import { useOwnMetered } from "../support/metered.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const URL_OF_LEAK = "https://code.example/blob/1/config.txt";
const folder = createTemporaryFolder("leaks");
const file = join(folder.path, "keys.json");
const reporter = createLeakReporter("ab12");
const stranger = createLeakReporter("ab12");
const next = createLeakReporter("cd34");
writeFileSync(file, leakKeysFile(reporter));
const metered = useOwnMetered({ servers: 2, env: { VX_LEAK_KEYS_FILE: file, VX_LOG_LEVEL: "info" } });
afterAll(() => folder.remove());

const finding = (token: string) => ({ token, type: "vx_key", url: URL_OF_LEAK, source: "content" });

async function report(...tokens: string[]) {
  const { status, body } = await sendReport(metered.app.url, reporter, JSON.stringify(tokens.map(finding)));
  expect(status).toBe(200);
  return (body as { label: string }[]).map(({ label }) => label);
}

/** What GET /v1/me on the other server answers: 200, or the reason of the error. */
async function me(secret: string) {
  const { status, body } = await sendAnyJson(metered.apps[1]?.url ?? "", { verb: "GET", path: "/v1/me", secret });
  return status === 200 ? 200 : body.error.code;
}

const childOf = async (secret: string): Promise<{ secret: string }> =>
  (await post(metered.app, { secret }, "/v1/keys", { name: "child", scopes: ["read", "keys"] })).json;

const eventsOf = async ({ id }: Pick<TestKey, "id">) =>
  (await metered.operator.listOperatorEvents({ target: id, method: "ReportLeak" })).events;

describe("a signed report", () => {
  test("revokes a key and all keys that it created, at once on every server, and no others", async () => {
    const key = await metered.payer(0n);
    const child = await childOf(key.secret);
    const grandchild = await childOf(child.secret);
    const sibling = await childOf(key.secret);
    expect(await report(child.secret)).toEqual(["true_positive"]);
    expect(await me(child.secret)).toBe("revoked_api_key");
    expect(await me(grandchild.secret)).toBe("revoked_api_key");
    expect(await me(sibling.secret)).toBe(200);
    expect(await report(key.secret)).toEqual(["true_positive"]);
    expect(await me(key.secret)).toBe("revoked_api_key");
    expect(await me(sibling.secret)).toBe("revoked_api_key");
  });

  test("is answered with the hash and the type of each token", async () => {
    const { secret } = await metered.payer(0n);
    const tokens = [secret, "vx_live_wrong"];
    const { body } = await sendReport(metered.app.url, reporter, JSON.stringify(tokens.map(finding)));
    const hashes = tokens.map((token) => createHash("sha256").update(token).digest("base64"));
    expect(body).toEqual([
      { token_hash: hashes[0], token_type: "vx_key", label: "true_positive" },
      { token_hash: hashes[1], token_type: "vx_key", label: "false_positive" },
    ]);
  });

  test("says of a text that is no key, and of a key of another server, that it is none", async () => {
    const other = generateKey(5, (size) => new Uint8Array(size).fill(7)).secret;
    expect(await report("hunter2", other)).toEqual(["false_positive", "false_positive"]);
    expect(await report()).toEqual([]);
  });

  test("revokes an expired key, and accepts a revoked one", async () => {
    const [expired, revoked] = [await metered.payer(0n), await metered.payer(0n)];
    await metered.app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${expired.id}`;
    await metered.operator.revokeKey({ keyId: revoked.id });
    expect(await report(expired.secret, revoked.secret)).toEqual(["true_positive", "true_positive"]);
    for (const { secret } of [expired, revoked]) expect(await me(secret)).toBe("revoked_api_key");
  });

  test("of the secret before a rotation revokes the key only while that secret works", async () => {
    const [during, after] = [await metered.payer(0n), await metered.payer(0n)];
    const rotate = ({ id }: TestKey, overlapSeconds: number) => metered.operator.rotateKey({ keyId: id, overlapSeconds });
    const [newDuring, newAfter] = [await rotate(during, 3_600), await rotate(after, 0)];
    expect(await report(during.secret, after.secret)).toEqual(["true_positive", "true_positive"]);
    expect(await me(newDuring.secret)).toBe("revoked_api_key");
    expect(await me(newAfter.secret)).toBe(200);
    expect(await eventsOf(after)).toEqual([]);
  });

  test("is logged once with its sender and place, however often it is sent", async () => {
    const key = await metered.payer(0n);
    const odd = `https://x.example/${key.secret}?\u001b[2J\u0000\ud800${"y".repeat(600)}`;
    const body = JSON.stringify([{ ...finding(key.secret), url: odd }, finding(key.secret)]);
    for (let i = 0; i < 3; i++) {
      const labels = Array(2).fill({ label: "true_positive" });
      expect(await sendReport(metered.app.url, reporter, body)).toMatchObject({ status: 200, body: labels });
    }
    const [event, ...others] = await eventsOf(key);
    expect(others).toEqual([]);
    expect(event).toMatchObject({ actorName: "leak report: ab12", accountId: key.accountId, outcome: "ok" });
    expect(event?.reason).toMatch(/^https:\/\/x\.example\/vx_live_\[redacted\]\?\ufffd\[2J\ufffd\ufffdy+$/);
    expect(event?.reason).toHaveLength(500);
    const plain = await metered.payer(0n);
    await report(plain.secret);
    expect((await eventsOf(plain))[0]?.reason).toBe(`${URL_OF_LEAK} (content)`);
  });

  test("leaves no part of a key in the log and in the tables", async () => {
    const { secret } = await metered.payer(0n);
    await report(secret);
    const text = metered.apps.map((one) => one.logText()).join("") + (await dumpTables(metered.app.database));
    expect(text).toContain(fingerprintOf(secret));
    expect(text).toContain("received a leak report");
    expect(text).not.toContain(secret.slice(8, 20));
  });
});

describe("a report is refused", () => {
  const [SIGNATURE, IDENTIFIER] = ["github-public-key-signature", "github-public-key-identifier"];
  const ofField = (headers: Record<string, string>, name: string, value?: string) => {
    const { [name]: _, ...rest } = headers;
    return value === undefined ? rest : { ...rest, [name]: value };
  };

  test.each([
    ["without a signature", (headers) => ofField(headers, SIGNATURE), /are required/],
    ["without an identifier", (headers) => ofField(headers, IDENTIFIER), /are required/],
    ["with the identifier of an unknown key", (headers) => ofField(headers, IDENTIFIER, "other"), /may not report leaks/],
    ["with a signature that is none", (headers) => ofField(headers, SIGNATURE, "bm9uZQ=="), /does not match the body/],
    ["with the signature of another body", () => signedHeaders(reporter, "[]"), /does not match the body/],
  ] as readonly [string, (headers: Record<string, string>) => Record<string, string>, RegExp][])(
    "%s, and revokes nothing",
    async (_, change, message) => {
      const { secret } = await metered.payer(0n);
      const body = JSON.stringify([finding(secret)]);
      const answer = await sendReport(metered.app.url, reporter, body, change(signedHeaders(reporter, body)));
      const error = { code: "invalid_report_signature", message: expect.stringMatching(message) };
      expect(answer).toMatchObject({ status: 403, body: { error } });
      expect(await me(secret)).toBe(200);
    },
  );

  test("if another key signed it, and before its body is parsed", async () => {
    for (const body of [JSON.stringify([finding((await metered.payer(0n)).secret)]), "{"])
      expect((await sendReport(metered.app.url, stranger, body)).status).toBe(403);
  });

  test("if the body is too large, no report, or has too many tokens", async () => {
    const send = async (body: string) => (await sendReport(metered.app.url, reporter, body)).status;
    expect(await send(JSON.stringify(Array(500).fill(finding("t"))))).toBe(200);
    for (const body of [
      "",
      "{",
      "{}",
      '[{"token":1,"type":"t"}]',
      "[null]",
      '[{"token":"t","type":"t","url":1}]',
      JSON.stringify(Array(501).fill(finding("t"))),
    ])
      expect(await send(body)).toBe(400);
    expect(await send(`[${" ".repeat(1_048_576)}]`)).toBe(413);
  });

  test("with another verb", async () => {
    const response = await fetch(`${metered.app.url}/leaks`);
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
  });
});

test("without VX_LEAK_KEYS_FILE, the address does not exist", async () => {
  const plain = await startTestApp({ database: metered.app.database });
  expect((await sendReport(plain.url, reporter, "[]")).status).toBe(404);
  await plain.stop();
});

test("the file is read again, and an invalid file changes nothing", async () => {
  const statuses = async () => [
    (await sendReport(metered.app.url, reporter, "[]")).status,
    (await sendReport(metered.app.url, next, "[]")).status,
  ];
  writeFileSync(file, leakKeysFile(reporter, next));
  await metered.app.reload();
  expect(await statuses()).toEqual([200, 200]);
  const wrongCurve = createLeakReporter("ef56", "secp384r1");
  for (const text of ["", "{}", leakKeysFile(), leakKeysFile(wrongCurve)]) {
    writeFileSync(file, text);
    await metered.app.reload();
    expect(await statuses()).toEqual([200, 200]);
  }
  expect(metered.app.logText()).toContain('the key \\"ef56\\" is not a public P-256 key in PEM');
  await expect(startTestApp({ database: metered.app.database, env: { VX_LEAK_KEYS_FILE: file } })).rejects.toThrow(
    /^VX_LEAK_KEYS_FILE: .*ef56/,
  );
  writeFileSync(file, leakKeysFile(next));
  await metered.app.reload();
  expect(await statuses()).toEqual([403, 200]);
});

describe("ReportLeak", () => {
  const requestOf = (secret: string) => ({
    fingerprint: fingerprintOf(secret),
    keyStart: secret.slice(0, 14),
    url: URL_OF_LEAK,
    reason: "seen by a customer",
  });

  test("revokes a key and those that it created, says how many, and has no further effect", async () => {
    const key = await metered.payer(0n);
    const child = await childOf(key.secret);
    const { operator } = metered;
    const revoked = { keyId: key.id, accountId: key.accountId };
    expect(await operator.reportLeak(requestOf(key.secret))).toMatchObject({ ...revoked, revokedKeys: 2 });
    expect(await operator.reportLeak(requestOf(key.secret))).toMatchObject({ ...revoked, revokedKeys: 0 });
    expect(await me(child.secret)).toBe("revoked_api_key");
    const events = await eventsOf(key);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ reason: "seen by a customer", details: { url: URL_OF_LEAK } });
  });

  test("refuses a secret that belongs to no key", async () => {
    const { secret } = generateKey(5, (size) => new Uint8Array(size).fill(9));
    const outside = { ...requestOf(secret), keyStart: "vx_live_0000zz" };
    for (const request of [requestOf(secret), outside])
      await expect(metered.operator.reportLeak(request)).rejects.toThrow("No key of this service has this secret.");
  });
});
