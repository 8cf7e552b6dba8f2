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
  app = await startTestApp({ env: { VX_ADMIN_TLS_CERT: inFolder("right.crt"), VX_ADMIN_TLS_KEY: inFolder("right.key") } });
});
afterAll(async () => {
  await app.stop();
  folder.remove();
});

const plans = (env: Record<string, string>, url?: string) =>
  vx([...(url === undefined ? [] : ["--url", url]), "plans", "list", "--json"], { ...TOKEN, ...env });

const RIGHT = { VX_ADMIN_TLS_CERT: inFolder("right.crt") };
const port = () => new URL(app.adminUrl).port;

test.each([
  ["VX_ADMIN_TLS_CERT with a port connects over TLS", () => plans({ ...RIGHT, VX_ADMIN_PORT: port() })],
  ["VX_ADMIN_URL takes precedence over a port", () => plans({ ...RIGHT, VX_ADMIN_URL: app.adminUrl, VX_ADMIN_PORT: "1" })],
  ["--url takes precedence over VX_ADMIN_URL", () => plans({ ...RIGHT, VX_ADMIN_URL: "https://127.0.0.1:1" }, app.adminUrl)],
])("%s", async (_, list) => {
  expect(await list()).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining('"free"') });
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

test.each<[Record<string, string>, RegExp]>([
  [{ VX_ADMIN_URL: "ops.example:8081" }, /VX_ADMIN_URL: must be a URL with host and port only/],
  [{ VX_ADMIN_URL: "https://me@ops.example/" }, /VX_ADMIN_URL: must be a URL with host and port only/],
  [{ VX_ADMIN_TLS_CERT: inFolder("right.key") }, /VX_ADMIN_TLS_CERT: must contain a certificate in PEM format/],
])("%o is wrong usage", async (env, problem) => {
  expect(await plans(env)).toMatchObject({ code: 2, stderr: expect.stringMatching(problem) });
});

test("--url is wrong usage unless it is a URL", async () => {
  const stderr = expect.stringMatching(/^vx: invalid setting: --url, VX_ADMIN_URL: must be a URL/);
  expect(await plans(RIGHT, "ops.example")).toMatchObject({ code: 2, stderr });
});
