import type { DescMethod } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, expect, test } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { httpBindings } from "../../src/server/rest/http-rule.ts";
import { callAny, developerMethods, pathOf } from "../support/any-method.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";
import type { RawAnswer } from "../support/raw.ts";
import { wires } from "../support/request-bytes.ts";

/** The APIs of OpenAI and Anthropic, which exist only over REST. */
const restOnly = developerMethods.filter(({ parent }) => /^vx\.(openai|anthropic)\./.test(parent.typeName));
const services = [...new Set(restOnly.map(({ parent }) => parent.typeName))];

let secret: string;

const app = useTestApp();
beforeAll(async () => {
  ({ secret } = await createPaidKey(operatorOf(app)));
});

test("the compatible APIs are six services", () => {
  expect(services.length).toBe(6);
});

test("their methods are unimplemented", async () => {
  const end = callAny(app);
  for (const method of restOnly) expect((await end(method, secret)).code, method.name).toBe("unimplemented");
});

/** The response without what differs between two requests: the path and the id in its texts, and the time. */
function comparable({ status, headers, body }: RawAnswer, path: string) {
  const { date: _, "content-length": __, "x-request-id": requestId = "", ...others } = headers;
  const plain = (text: string) => text.replaceAll(path, "PATH").replaceAll(requestId, "ID");
  // Details repeat the texts in base64, with the lengths of the texts.
  const text = body
    .toString("latin1")
    .replace(/"value":"[^"]*"/g, "")
    .replace(/details-bin: ?\S+/, "");
  const named = Object.entries(others).filter(([name]) => name !== "grpc-status-details-bin");
  return { status, headers: named.map(([name, value]) => [name, plain(value)]), text: plain(text) };
}

test("over REST, they require their scope, and an account that is not suspended", async () => {
  const operator = operatorOf(app);
  const { secret: keysOnly } = await createTestKey(operator, { scopes: ["keys"] });
  const suspended = await createTestKey(operator);
  await operator.suspendAccount({ accountId: suspended.accountId, reason: "overdue" });
  for (const { verb, path, selectedBy, selectedByHeader } of restOnly.flatMap(httpBindings)) {
    for (const [secret, code] of [
      [keysOnly, "insufficient_scope"],
      [suspended.secret, "account_suspended"],
    ] as const) {
      const answer = await fetch(app.url + path, {
        method: verb,
        headers: {
          ...bearer(secret),
          "content-type": "application/json",
          ...(selectedByHeader !== "" && { [selectedByHeader]: "2023-06-01" }),
        },
        ...(verb === "POST" && { body: JSON.stringify(selectedBy ? { [selectedBy.name]: true } : {}) }),
      });
      expect({ status: answer.status, body: await answer.text() }, path).toEqual({
        status: 403,
        body: expect.stringContaining(code),
      });
    }
  }
});

test.each(wires)("over $name, they are answered as methods that do not exist", async (wire) => {
  const unknown = "/vx.v1.MeService/Nothing";
  for (const sent of [bearer(secret), {}]) {
    const expected = await wire.send(app.url, unknown, new Uint8Array(), { headers: sent });
    for (const method of restOnly) {
      const answer = await wire.send(app.url, pathOf(method), new Uint8Array(), { headers: sent });
      expect(comparable(answer, pathOf(method)), method.name).toEqual(comparable(expected, unknown));
    }
  }
});

test.each([
  ["v1", ServerReflection],
  ["v1alpha", ServerReflectionAlpha],
] as const)("reflection %s has neither the services nor their files", async (_version, service) => {
  const client = createClient(service as typeof ServerReflection, createGrpcTransport({ baseUrl: app.url }));
  const { file } = (restOnly[0] as DescMethod).parent;
  async function* ask() {
    yield { messageRequest: { case: "listServices", value: "" } } as const;
    for (const value of services) yield { messageRequest: { case: "fileContainingSymbol", value } } as const;
    yield { messageRequest: { case: "fileByFilename", value: file.proto.name } } as const;
  }
  const answers = [];
  for await (const { messageResponse } of client.serverReflectionInfo(ask())) answers.push(messageResponse);
  const [list, ...others] = answers;
  const names = list?.case === "listServicesResponse" ? list.value.service.map(({ name }) => name) : [];
  expect(names).toContain("vx.v1.MeService");
  expect(names.filter((name) => services.includes(name))).toEqual([]);
  expect(others.length).toBe(services.length + 1);
  for (const other of others) expect(other).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
});

test("the health service does not list them", async () => {
  const health = createClient(Health, createGrpcTransport({ baseUrl: app.url }));
  const { statuses } = await health.list({});
  expect(Object.keys(statuses).filter((name) => services.includes(name))).toEqual([]);
  for (const service of services) await expect(health.check({ service })).rejects.toMatchObject({ code: 5 });
});
