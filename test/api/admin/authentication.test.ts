import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AdminService } from "../../../gen/vx/admin/v1/admin_pb.js";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../../support/app.ts";
import { createTestKey, operatorOf } from "../../support/fixtures.ts";
import { operatorProtocols } from "../../support/operator.ts";
import { bearer } from "../../support/protocols.ts";
import { sendHttp1 } from "../../support/raw.ts";

let app: TestApp;
let developerKey: string;

beforeAll(async () => {
  app = await startTestApp();
  developerKey = (await createTestKey(operatorOf(app))).secret;
});
afterAll(() => app.stop());

const refused: readonly { what: string; headers: () => Record<string, string> }[] = [
  { what: "no token", headers: () => ({}) },
  { what: "a wrong token", headers: () => bearer("operator-token-of-the-testS") },
  { what: "a shorter token", headers: () => bearer(OPERATOR_TOKEN.slice(0, -1)) },
  { what: "a longer token", headers: () => bearer(`${OPERATOR_TOKEN}x`) },
  { what: "an empty token", headers: () => ({ authorization: "Bearer " }) },
  {
    what: "another scheme",
    headers: () => ({ authorization: `Basic ${Buffer.from(`x:${OPERATOR_TOKEN}`).toString("base64")}` }),
  },
  { what: "a developer's key", headers: () => bearer(developerKey) },
  { what: "only a cookie", headers: () => ({ cookie: `token=${OPERATOR_TOKEN}` }) },
];

describe.each(operatorProtocols)("$name", ({ open }) => {
  test.each(refused)("$what: every method of the operator API returns 401", async ({ headers }) => {
    const caller = open(app.adminUrl);
    for (const method of AdminService.methods as DescMethodUnary[]) {
      const outcome = await caller.call(method, create(method.input), headers());
      expect(outcome, method.name).toMatchObject({
        code: "unauthenticated",
        reason: "invalid_operator_token",
        headers: { "www-authenticate": "Bearer" },
      });
    }
    caller.close();
  });
});

test.each(refused)("$what: /metrics returns 401", async ({ headers }) => {
  const answer = await sendHttp1(app.adminUrl, { method: "GET", path: "/metrics", headers: headers() });
  expect(answer.status).toBe(401);
  expect(answer.headers["www-authenticate"]).toBe("Bearer");
  expect(JSON.parse(answer.body.toString()).error.code).toBe("invalid_operator_token");
});

test("the token is accepted once and only in the header, not in the URL", async () => {
  const get = (path: string, headers: Record<string, string | string[]>) =>
    sendHttp1(app.adminUrl, { method: "GET", path, headers });
  const authorization = `Bearer ${OPERATOR_TOKEN}`;
  expect((await get("/metrics", { authorization })).status).toBe(200);
  expect((await get("/metrics", { authorization: [authorization, authorization] })).status).toBe(401);
  expect((await get(`/metrics?token=${OPERATOR_TOKEN}`, {})).status).toBe(401);
});

test("the token is not logged", () => {
  expect(app.logText()).not.toContain(OPERATOR_TOKEN);
});
