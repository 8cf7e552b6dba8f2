import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { createCertificate } from "../support/certificate.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { vx } from "./support.ts";

const folder = createTemporaryFolder("cli-tls");
const inFolder = (name: string) => join(folder.path, name);
const TOKEN = { VX_ADMIN_TOKEN: OPERATOR_TOKEN };
let app: TestApp;

beforeAll(async () => {
  for (const name of ["right", "other"]) {
    const { cert, key } = createCertificate();
    writeFileSync(inFolder(`${name}.crt`), cert);
    writeFileSync(inFolder(`${name}.key`), key);
  }
  const both = ["other.crt", "right.crt"].map((name) => readFileSync(inFolder(name), "utf8"));
  writeFileSync(inFolder("both.crt"), both.join(""));
  app = await startTestApp({
    env: { VX_ADMIN_TLS_CERT: inFolder("right.crt"), VX_ADMIN_TLS_KEY: inFolder("right.key") },
  });
});
afterAll(async () => {
  await app.stop();
  folder.remove();
});

const plans = (env: Record<string, string>) => vx(["plans", "list", "--json"], { ...TOKEN, ...env });

test("VX_ADMIN_TLS_CERT with a port connects over TLS", async () => {
  const { port } = new URL(app.adminUrl);
  const outcome = await plans({ VX_ADMIN_PORT: port, VX_ADMIN_TLS_CERT: inFolder("right.crt") });
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toContain('"free"');
});

test("VX_ADMIN_URL takes precedence over VX_ADMIN_HOST and VX_ADMIN_PORT", async () => {
  const outcome = await plans({
    VX_ADMIN_URL: app.adminUrl,
    VX_ADMIN_PORT: "1",
    VX_ADMIN_TLS_CERT: inFolder("right.crt"),
  });
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
});

test("--url takes precedence over VX_ADMIN_URL", async () => {
  const env = { ...TOKEN, VX_ADMIN_URL: "https://127.0.0.1:1", VX_ADMIN_TLS_CERT: inFolder("right.crt") };
  const outcome = await vx(["--url", app.adminUrl, "plans", "list", "--json"], env);
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(await vx(["--url", "ops.example", "plans", "list"], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^vx: invalid setting: --url, VX_ADMIN_URL: must be a URL/),
  });
});

test.each([
  ["another certificate", { VX_ADMIN_TLS_CERT: inFolder("other.crt") }, /self-signed certificate/],
  ["another certificate before it", { VX_ADMIN_TLS_CERT: inFolder("both.crt") }, /is not the one in VX_ADMIN_TLS_CERT/],
  ["no certificate", {}, /self-signed certificate/],
])("with %s the listener is not trusted", async (_what, env, problem) => {
  const { code, stdout, stderr } = await plans({ VX_ADMIN_URL: app.adminUrl, ...env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(problem);
});

test.each(["ops.example:8081", "https://me@ops.example/"])("VX_ADMIN_URL=%s is wrong usage", async (url) => {
  const { code, stderr } = await plans({ VX_ADMIN_URL: url });
  expect(code).toBe(2);
  expect(stderr).toMatch(/VX_ADMIN_URL: must be a URL with host and port only/);
});

test("a file without a certificate is wrong usage", async () => {
  const { code, stderr } = await plans({ VX_ADMIN_TLS_CERT: inFolder("right.key") });
  expect(code).toBe(2);
  expect(stderr).toContain("VX_ADMIN_TLS_CERT: must contain a certificate in PEM format");
});
