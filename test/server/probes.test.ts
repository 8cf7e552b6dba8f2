import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { OPERATOR_TOKEN, useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";

const app = useTestApp();

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
    const read = async () => await (await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) })).text();
    const counts = (text: string) =>
      ["grpc", "grpc-web", "connect"].flatMap((protocol) => {
        const rpc = `rpc="vx.v1.MeService/GetMe",protocol="${protocol}"`;
        const names = ["ok", "unauthenticated"].map((code) => `vx_calls_total{${rpc},code="${code}"} `);
        const lines = [...names, `vx_call_seconds_count{${rpc}} `];
        return lines.map((line) => Number(text.split(line)[1]?.split("\n")[0] ?? 0));
      });
    const before = counts(await read());
    for (const { name, open } of protocols) {
      const caller = open(app.url);
      expect((await caller.call(MeService.method.getMe, {}, bearer(secret))).ok, name).toBe(true);
      expect((await caller.call(MeService.method.getMe, {})).ok, name).toBe(false);
      caller.close();
    }
    const text = await read();
    // Each protocol in two forms.
    expect(counts(text).map((count, i) => count - (before[i] ?? 0))).toEqual([2, 2, 4, 2, 2, 4, 2, 2, 4]);
    expect(text).toMatch(/vx_admission_queue_depth 0/);
    expect(text).toMatch(/vx_batch_size_count\{batcher="admission"\} [1-9]/);
    expect(text).toMatch(/vx_database_connections [1-9]/);
    expect(text).not.toContain(secret);
  });
});
