import { type DescField, type DescMessage, fromJson, ScalarType } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { fingerprintOf } from "../../src/domain/credentials.ts";
import { type HttpBinding, httpBindings } from "../../src/server/rest/http-rule.ts";
import { operatorServices } from "../../src/server/services.ts";
import { TEST_CALLER } from "../support/action.ts";
import { developerMethods, openAny, rpcMethods } from "../support/any-method.ts";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { dumpTables, postgresLog } from "../support/database.ts";
import { operatorOf, useTestKey } from "../support/fixtures.ts";
import { bearer, type ProtocolCase, protocols } from "../support/protocols.ts";
import { type RawAnswer, sendHttp1 } from "../support/raw.ts";
import { words } from "../support/words.ts";

/** A valid key is sent in every string field of every RPC; then all stored and logged data is searched. */
/** All complete responses. */
const answers: string[] = [];
/** A key that the API created. */
let child = "";

const app = useOwnApp({ env: { VX_LOG_LEVEL: "trace" } });
const key = useTestKey(app, { scopes: ["generate", "read", "keys", "webhooks", "billing"] });

const json = () => ({ "content-type": "application/json", ...bearer(key.secret) });

type TextField = { readonly path: string; readonly json: (text: string) => Record<string, unknown> };

/** Every string field of a message, with a request that contains the text in it. */
function textFields(desc: DescMessage): TextField[] {
  return desc.fields.flatMap((field) => textsOf(field));
}

function textsOf(field: DescField): TextField[] {
  const isList = field.fieldKind === "list";
  const path = isList ? `${field.name}[0]` : field.name;
  const put = (value: unknown) => ({ [field.name]: isList ? [value] : value });
  if ("scalar" in field && field.scalar === ScalarType.STRING) return [{ path, json: put }];
  // Timestamps are strings in JSON, but cannot contain a key.
  if (!("message" in field) || !field.message || field.message.typeName.startsWith("google.")) return [];
  return textFields(field.message).map((inner) => ({ path: `${path}.${inner.path}`, json: (text) => put(inner.json(text)) }));
}

const operatorMethods = operatorServices.flatMap(({ methods }) => methods);
const cases = [...developerMethods, ...operatorMethods].flatMap((method) =>
  textFields(method.input).map((field) => ({ method, field })),
);

const protocol = protocols.find(({ name }) => name === "Connect binary over HTTP/2") as ProtocolCase;

test("a key in any string field of a request is rejected", async () => {
  const [callers, ids] = [
    { developer: openAny(protocol, app.url), operator: openAny(protocol, app.adminUrl) },
    { developer: bearer(key.secret), operator: bearer(OPERATOR_TOKEN) },
  ];
  for (const [number, { method, field }] of cases.entries()) {
    if (!rpcMethods.includes(method) && !operatorMethods.includes(method as never)) continue;
    const side = operatorMethods.includes(method as never) ? "operator" : "developer";
    // A key inside a text is found too.
    for (const text of [number % 2 === 0 ? key.secret : `the key ${key.secret}!`]) {
      const ending = await callers[side].end(method, ids[side], fromJson(method.input, field.json(text) as never));
      answers.push(JSON.stringify(ending));
      expect(ending, `${method} ${field.path}`).toMatchObject({ code: "invalid_argument", reason: "invalid_argument" });
      expect(ending.text, `${method}`).toContain(`${field.path}: must not contain an API key`);
    }
  }
  callers.developer.close();
  callers.operator.close();
});

test("REST: a key in any string field of a request, or in its URL, is rejected", async () => {
  for (const { method, field } of cases) {
    for (const binding of httpBindings(method)) {
      const inAddress = isInAddress(binding, field);
      // The messages of RPCs are validated in the same way over every protocol.
      if (!inAddress && rpcMethods.includes(method)) continue;
      const answer = await sendRest(binding, field, encodeURIComponent(key.secret).replace("v", "%76"));
      expect(answer.status, `${binding.verb} ${binding.path} ${field.path}`).toBe(400);
      expect(answer.body.toString(), binding.path).toContain(`${field.path}: must not contain an API key`);
      // These parts of a request are not validated.
      if (inAddress) expect((await sendRest(binding, field, key.secret)).status).toBe(401);
    }
  }
});

test("no response contains a key from an unknown field, a header or an invalid body", async () => {
  for (const body of [
    { [key.secret]: 1 },
    { name: "x", [`${key.secret}`]: { a: key.secret } },
    { name: { [key.secret]: 1 } },
    { name: "x", expires_at: key.secret },
    { name: "x", rate_limit_rpm: key.secret },
  ]) {
    await send({ path: "/v1/keys", headers: json(), body: JSON.stringify(body) });
    await send({ path: "/vx.v1.KeyService/CreateKey", headers: json(), body: JSON.stringify(body) });
  }
  for (const body of [key.secret, `{"name": "${key.secret}`, `{"name": ${key.secret}}`, `["${key.secret}"]`]) {
    await send({ path: "/v1/keys", headers: json(), body });
    await send({ path: "/vx.v1.KeyService/CreateKey", headers: json(), body });
  }
  const names = words(`
    x-request-id content-encoding connect-content-encoding grpc-encoding grpc-timeout connect-timeout-ms accept accept-encoding
    idempotency-key traceparent user-agent referer
  `);
  for (const name of [...names, key.secret.toLowerCase()]) {
    for (const type of ["application/json", "application/grpc", "application/grpc-web", key.secret]) {
      const headers = { "content-type": type, ...bearer(key.secret), [name]: key.secret };
      await send({ path: "/v1/me", method: "GET", headers });
      await send({ path: "/vx.v1.MeService/GetMe", headers, body: "{}" });
      await send({ path: `/vx.v1.MeService/${key.secret}`, headers, body: "{}" });
      await send({ path: `/%76${key.secret.slice(1)}`, headers, body: "{}" });
    }
  }
});

test("an idempotency key that contains a key is rejected, over every protocol that has one", async () => {
  const headers = json();
  const body = JSON.stringify({ model: "vx-sandbox", messages: [{ role: "user", content: "Hi" }] });
  for (const value of [key.secret, `"${key.secret}"`, `retry of ${key.secret}`]) {
    for (const name of ["idempotency-key", "request_id"]) {
      for (const path of ["/v1/generate", "/v1/chat/completions", "/vx.v1.GenerateService/Generate"]) {
        const answer = await sendHttp1(app.url, { path, headers: { ...headers, [name]: value }, body });
        answers.push(answer.body.toString());
        expect([answer.status, answer.body.toString()], `${path} ${name}`).toEqual([
          400,
          expect.stringContaining("must not contain an API key"),
        ]);
      }
    }
  }
});

test("a key that the API creates, that is mistyped, or that is revoked, is used", async () => {
  const caller = openAny(protocol, app.url);
  const created = await send({ path: "/v1/keys", headers: json(), body: JSON.stringify({ name: "ci" }) });
  child = (JSON.parse(created.body.toString()) as { secret: string }).secret;
  answers.pop();
  for (const secret of [child, `${child}0`, `${key.secret}0`]) {
    for (const method of rpcMethods) answers.push(JSON.stringify(await caller.end(method, bearer(secret))));
    await send({ path: `/v1/me?key=${secret}`, method: "GET", headers: { cookie: secret } });
  }
  await operatorOf(app).revokeKey({ keyId: key.id });
  for (const method of rpcMethods) answers.push(JSON.stringify(await caller.end(method, bearer(key.secret))));
  caller.close();
});

test("no table, file, log or response contains a key", async () => {
  const metrics = await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
  const written = {
    tables: await dumpTables(app.database),
    "the server's log": app.logText(),
    "PostgreSQL's log": postgresLog(),
    metrics: await metrics.text(),
    answers: answers.join("\n"),
  };
  // The search must find these, otherwise it searches the wrong places.
  expect(written.tables).toContain(fingerprintOf(key.secret));
  expect(written.tables).toContain("must not contain an API key");
  expect(written["the server's log"]).toContain(key.id);
  expect(written["PostgreSQL's log"]).toContain("database system");
  expect(answers.length).toBeGreaterThan(300);
  for (const secret of [key.secret, child])
    for (const [where, text] of Object.entries(written)) {
      expect(text.toLowerCase().includes(secret.slice(12, -4).toLowerCase()), where).toBe(false);
      expect(text.includes(Buffer.from(secret).toString("hex")), where).toBe(false);
      expect(text.includes(Buffer.from(secret).toString("base64").slice(0, -4)), where).toBe(false);
    }
});

test("errors of PostgreSQL contain no text of the caller, neither when thrown nor in its log", async () => {
  const operator = operatorOf(app);
  const phrase = "word-of-the-caller";
  const { accountId } = key;
  // The server's own error repeats the account that an operator named.
  const noAccount = "acct_00000000000000000000000000";
  const refused = [
    operator.createAccount({ name: "x", plan: phrase }),
    operator.createKey({ accountId: noAccount, name: phrase }),
    operator.createKey({ accountId, name: phrase, plan: phrase }),
    operator.setAccountPlan({ accountId: noAccount, plan: phrase }),
    operator.creditAccount({ accountId: noAccount, amountMicros: 1n, reason: phrase, idempotencyKey: phrase }),
    ...[
      `vx.create_account('${TEST_CALLER}', 1::smallint, '${phrase}', '${phrase}', '${phrase}')`,
      `vx.set_account_plan('${TEST_CALLER}', 1::smallint, '${phrase}', 'free')`,
      `vx.set_account_plan('${TEST_CALLER}', vx.lane_of('${accountId}'), '${accountId}', '${phrase}')`,
      `vx.move_balance('${TEST_CALLER}', 1::smallint, '${phrase}', '${phrase}', 0, 'credit', 1, '${phrase}', '${phrase}')`,
    ].map((call) => app.database.owner.unsafe(`SELECT ${call}`)),
  ];
  for (const outcome of await Promise.allSettled(refused)) {
    if (outcome.status === "fulfilled") throw new Error("it was not refused");
    const { message, detail, hint } = outcome.reason as { message: string; detail?: string; hint?: string };
    expect(`${message} ${detail} ${hint}`).not.toContain(phrase);
  }
  // The log contains the statements of the owner's session; the server never writes a value into a statement.
  const lines = postgresLog()
    .split("\n")
    .filter((line) => !line.includes("STATEMENT:  SELECT vx."));
  expect(lines.join("\n")).not.toContain(phrase);
});

function isInAddress({ variables, hasBody }: HttpBinding, { path }: TextField): boolean {
  return !hasBody || variables.some(({ name }) => name === path);
}

function sendRest(binding: HttpBinding, field: TextField, text: string): Promise<RawAnswer> {
  const [inPath, inBody] = [binding.variables.some(({ name }) => name === field.path), binding.hasBody];
  const path = binding.path.replaceAll(/\{(\w+)\}/g, (_, name) => (name === field.path ? text : "x"));
  const query = inPath || inBody ? "" : `?${field.path.replaceAll(/\[\d+\]/g, "")}=${text}`;
  const message = inBody && !inPath ? field.json(decodeURIComponent(text)) : {};
  const selected = binding.selectedBy ? { [binding.selectedBy.name]: true } : {};
  return send({
    method: binding.verb,
    path: `${path}${query}`,
    headers: { "content-type": "application/json", ...bearer(key.secret) },
    ...(inBody ? { body: JSON.stringify({ ...message, ...selected }) } : {}),
  });
}

async function send(request: Parameters<typeof sendHttp1>[1]): Promise<RawAnswer> {
  const answer = await sendHttp1(app.url, request);
  answers.push(`${request.path} ${JSON.stringify(answer.headers)} ${answer.body.toString()}`.slice(request.path.length));
  return answer;
}
