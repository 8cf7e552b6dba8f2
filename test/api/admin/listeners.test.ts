import { create, type DescMethod, type DescMethodUnary } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { AdminService } from "../../../gen/vx/admin/v1/admin_pb.js";
import { developerMethods, pathOf } from "../../support/any-method.ts";
import { OPERATOR_TOKEN, useTestApp } from "../../support/app.ts";
import { createTestKey, operatorOf } from "../../support/fixtures.ts";
import { operatorProtocols } from "../../support/operator.ts";
import { bearer, callOf } from "../../support/protocols.ts";
import { sendHttp1 } from "../../support/raw.ts";

let developerKey: string;

const app = useTestApp();
beforeAll(async () => {
  developerKey = (await createTestKey(operatorOf(app))).secret;
});

const sides: readonly { what: string; methods: readonly DescMethod[]; url: () => string }[] = [
  { what: "the operator API on the public listener", methods: AdminService.methods, url: () => app.url },
  { what: "the developer API on the operator listener", methods: developerMethods, url: () => app.adminUrl },
];

describe.each(sides)("$what does not exist", ({ methods, url }) => {
  test("with any credential", async () => {
    const call = callOf({ url: url() });
    for (const method of methods.filter((one) => one.methodKind === "unary") as DescMethodUnary[]) {
      for (const credential of ["", OPERATOR_TOKEN, developerKey])
        expect(await call(method, create(method.input), credential), method.name).toMatchObject({
          ok: false,
          code: "unimplemented",
        });
    }
  });

  test.each(operatorProtocols)("over $name", async ({ open }) => {
    const caller = open(url());
    const method = methods.find(({ name }) => name === "ListKeys") as DescMethodUnary;
    const outcome = await caller.call(method, create(method.input), bearer(OPERATOR_TOKEN));
    expect(outcome).toMatchObject({ ok: false, code: "unimplemented" });
    caller.close();
  });

  test("over Connect it returns 404 with the reason not_found", async () => {
    for (const method of methods.slice(0, 3)) {
      const answer = await sendHttp1(url(), {
        path: pathOf(method),
        headers: { "content-type": "application/json", ...bearer(OPERATOR_TOKEN) },
        body: "{}",
      });
      expect(answer.status, method.name).toBe(404);
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        code: "unimplemented",
        details: [{ debug: { reason: "NOT_FOUND" } }],
      });
    }
  });
});

test("the public listener does not serve /metrics", async () => {
  const answer = await sendHttp1(app.url, {
    method: "GET",
    path: "/metrics",
    headers: bearer(OPERATOR_TOKEN),
  });
  expect(answer.status).toBe(404);
});
