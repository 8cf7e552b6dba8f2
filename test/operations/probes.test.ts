import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";

const app = useOwnApp();

describe.each(["url", "adminUrl"] as const)("on the listener of %s", (listener) => {
  test.each(["/livez", "/readyz"])("%s is 200 without a key, for GET and HEAD only", async (path) => {
    expect((await fetch(app[listener] + path)).status).toBe(200);
    expect((await fetch(app[listener] + path, { method: "HEAD" })).status).toBe(200);
    const refused = await fetch(app[listener] + path, { method: "POST" });
    expect(refused.status).toBe(405);
    expect(refused.headers.get("allow")).toBe("GET, HEAD");
  });

  test("grpc.health.v1 reports the server and its services", async () => {
    const health = createClient(Health, createGrpcTransport({ baseUrl: app[listener] }));
    const service = listener === "url" ? "vx.v1.KeyService" : "vx.admin.v1.AdminService";
    expect(await health.check({})).toMatchObject({ status: Status.SERVING });
    expect(await health.check({ service })).toMatchObject({ status: Status.SERVING });
    await expect(health.check({ service: "nope" })).rejects.toMatchObject({ code: 5 });
    expect(Object.keys((await health.list({})).statuses)).toContain(service);
  });

  test.each([
    ["v1", ServerReflection],
    ["v1alpha", ServerReflectionAlpha],
  ] as const)("reflection %s lists the services and hands out their files", async (_version, service) => {
    const client = createClient(service as typeof ServerReflection, createGrpcTransport({ baseUrl: app[listener] }));
    const symbol = listener === "url" ? "vx.v1.MeService.GetMe" : "vx.admin.v1.AdminService";
    async function* ask() {
      yield { messageRequest: { case: "listServices", value: "" } } as const;
      yield { messageRequest: { case: "fileContainingSymbol", value: symbol } } as const;
      yield { messageRequest: { case: "fileContainingSymbol", value: "no.such.Symbol" } } as const;
      yield { messageRequest: { case: "fileByFilename", value: "google/api/annotations.proto" } } as const;
      yield { messageRequest: { case: "fileContainingSymbol", value: "google.rpc.ErrorInfo" } } as const;
    }
    const answers = [];
    for await (const answer of client.serverReflectionInfo(ask())) answers.push(answer.messageResponse);
    const [list, file, nothing, imported, details] = answers;
    const names = list?.case === "listServicesResponse" ? list.value.service.map(({ name }) => name) : [];
    expect(names).toContain(listener === "url" ? "vx.v1.MeService" : "vx.admin.v1.AdminService");
    expect(names).toContain("grpc.health.v1.Health");
    expect(file?.case).toBe("fileDescriptorResponse");
    expect(nothing).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
    expect(imported?.case).toBe("fileDescriptorResponse");
    expect(details?.case).toBe("fileDescriptorResponse");
  });
});

describe("metrics", () => {
  test("require the operator token, and only the operator listener serves them", async () => {
    expect((await fetch(`${app.adminUrl}/metrics`)).status).toBe(401);
    expect((await fetch(`${app.adminUrl}/metrics`, { headers: bearer("wrong") })).status).toBe(401);
    expect((await fetch(`${app.url}/metrics`, { headers: bearer(OPERATOR_TOKEN) })).status).toBe(404);
  });

  test("count calls by RPC, protocol and code, and include batches and connections", async () => {
    const { secret } = await createTestKey(operatorOf(app));
    for (const { name, open } of protocols) {
      const caller = open(app.url);
      expect((await caller.call(MeService.method.getMe, {}, bearer(secret))).ok, name).toBe(true);
      expect((await caller.call(MeService.method.getMe, {})).ok, name).toBe(false);
      caller.close();
    }
    const text = await (await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) })).text();
    for (const protocol of ["grpc", "grpc-web", "connect"]) {
      for (const code of ["ok", "unauthenticated"]) {
        expect(text).toContain(`vx_calls_total{rpc="vx.v1.MeService/GetMe",protocol="${protocol}",code="${code}"} 2`);
      }
      expect(text).toContain(`vx_call_seconds_count{rpc="vx.v1.MeService/GetMe",protocol="${protocol}"} 4`);
    }
    expect(text).toMatch(/vx_admission_queue_depth 0/);
    expect(text).toMatch(/vx_batch_size_count\{batcher="admission"\} [1-9]/);
    expect(text).toMatch(/vx_database_connections [1-9]/);
    expect(text).not.toContain(secret);
  });
});

describe("the log", () => {
  test("is JSON with the request id of the caller, and redacts keys", async () => {
    const { secret, id } = await createTestKey(operatorOf(app));
    const headers = {
      ...bearer(secret),
      "content-type": "application/json",
      "x-request-id": "my-request-1",
      referer: secret,
    };
    const answer = await fetch(`${app.url}/vx.v1.MeService/GetMe`, { method: "POST", headers, body: "{}" });
    expect(answer.headers.get("x-request-id")).toBe("my-request-1");
    const lines = app
      .logText()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.find((line) => line.request_id === "my-request-1")).toMatchObject({
      level: "info",
      rpc: "vx.v1.MeService/GetMe",
      protocol: "connect",
      code: "ok",
      key_id: id,
    });
    expect(app.logText()).not.toContain(secret);
  });
});
