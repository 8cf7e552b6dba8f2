import { execFile } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { createVenv, problemOf } from "../support/python.ts";

/** Installed toolchains and generated clients. Created once and kept; git ignores it. */
const FOLDER = resolve(".clients");
const OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
/** The first build compiles the standard library. */
const TIMEOUT_MS = 240_000;

const run = promisify(execFile);
const at = (...path: string[]) => join(FOLDER, ...path);

mkdirSync(FOLDER, { recursive: true });
const missing = {
  typescript: prepareTypeScript(),
  python: createVenv(at("venv"), "test/generated/python/requirements.txt"),
  go: problemOf("go", "version"),
};
for (const [language, problem] of Object.entries(missing)) {
  if (problem) console.error(`SKIPPED: no generated client for ${language} was tested. ${problem}`);
}

function prepareTypeScript(): string | undefined {
  cpSync("test/generated/typescript", at("typescript"), { recursive: true });
  return problemOf(
    "npm",
    "install",
    "--prefix",
    at("typescript"),
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
  );
}

let app: TestApp;
let env: NodeJS.ProcessEnv;
let document: string;

beforeAll(async () => {
  app = await startTestApp();
  const { secret } = await createPaidKey(operatorOf(app));
  env = { ...process.env, VX_URL: app.url, VX_KEY: secret };
  document = at("openapi.json");
  writeFileSync(document, await (await fetch(`${app.url}/openapi.json`)).text());
});
afterAll(() => app.stop());

const RESULT = {
  generated: expect.stringMatching(/^This is a reply of the sandbox\./),
  chat: expect.stringMatching(/^This is a reply of the sandbox\./),
  refused: "model_not_found",
  ledger: "generation",
};

describe.skipIf(missing.typescript)("openapi-typescript", () => {
  const folder = at("typescript");

  test("generates types that compile and match the responses", { timeout: TIMEOUT_MS }, async () => {
    const generator = join(folder, "node_modules/.bin/openapi-typescript");
    // In a folder of its own: it reads the redocly.yaml of the current one.
    await run(generator, [document, "--output", "vx.ts"], { cwd: folder });
    await run("tsc", ["--project", folder]);
    const { stdout } = await run(process.execPath, [join(folder, "call.ts")], { env });
    expect(JSON.parse(stdout)).toEqual(RESULT);
  });
});

describe.skipIf(missing.python)("openapi-python-client", () => {
  const folder = at("python");
  const program = (name: string) => at("venv/bin", name);

  test("generates every endpoint, with types that mypy accepts", { timeout: TIMEOUT_MS }, async () => {
    rmSync(folder, { recursive: true, force: true });
    const path = `${at("venv/bin")}:${process.env.PATH}`;
    const generate = ["generate", "--path", document, "--output-path", folder, "--fail-on-warning"];
    await run(program("openapi-python-client"), generate, { env: { ...env, PATH: path } });
    cpSync("test/generated/python/call.py", join(folder, "call.py"));
    await run(program("mypy"), ["vx_client", "call.py"], { cwd: folder });
    const { stdout } = await run(program("python"), ["call.py"], { cwd: folder, env });
    expect(JSON.parse(stdout)).toEqual(RESULT);
  });
});

describe.skipIf(missing.go)("oapi-codegen", () => {
  const folder = at("go");

  test("generates a package that builds", { timeout: TIMEOUT_MS }, async () => {
    cpSync("test/generated/go", folder, { recursive: true });
    mkdirSync(join(folder, "vx"), { recursive: true });
    const generate = ["run", OAPI_CODEGEN, "-generate", "types,client", "-package", "vx", document];
    const { stdout: source } = await run("go", generate, { maxBuffer: 1 << 26 });
    writeFileSync(join(folder, "vx/vx.go"), source);
    await run("go", ["build", "-o", "call", "."], { cwd: folder });
    const { stdout } = await run(join(folder, "call"), [], { env });
    expect(JSON.parse(stdout)).toEqual(RESULT);
  });
});
