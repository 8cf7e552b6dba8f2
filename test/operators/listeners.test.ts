import { create, type DescMethod, type DescMethodUnary } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { developerMethods } from "../support/any-method.ts";
import { OPERATOR_TOKEN, useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { operatorProtocols } from "../support/operator.ts";
import { bearer, callOf } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";

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
    for (const [number, method] of methods.filter((one) => one.methodKind === "unary").entries()) {
      const credential = ["", OPERATOR_TOKEN, developerKey][number % 3] ?? "";
      const outcome = await call(method as DescMethodUnary, create(method.input), credential);
      expect(outcome, method.name).toMatchObject({ ok: false, code: "unimplemented" });
    }
  });

  test.each(operatorProtocols)("over $name", async ({ open }) => {
    const caller = open(url());
    const method = methods.find(({ name }) => name === "ListKeys") as DescMethodUnary;
    const outcome = await caller.call(method, create(method.input), bearer(OPERATOR_TOKEN));
    expect(outcome).toMatchObject({ ok: false, code: "unimplemented", reason: "not_found" });
    caller.close();
  });
});

test("the public listener does not serve /metrics", async () => {
  const answer = await sendHttp1(app.url, { method: "GET", path: "/metrics", headers: bearer(OPERATOR_TOKEN) });
  expect(answer.status).toBe(404);
});
