import { execFile } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { createVenv, problemOf } from "../support/python.ts";

/** Installed toolchains and generated clients. Created once and kept; git ignores it. */
const FOLDER = resolve(".clients");
const OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
const OPENAPI_GENERATOR = "7.25.0";
const OPENAPI_GENERATOR_JAR = `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`;
/** The first build compiles the standard library. */
const TIMEOUT_MS = 240_000;

const run = promisify(execFile);
const at = (...path: string[]) => join(FOLDER, ...path);

mkdirSync(FOLDER, { recursive: true });
/** The short form of CI tests only some of the generators. */
const selected = process.env.VX_GENERATORS?.split(",");
const npmProblem = prepareTypeScript();
const generatorProblem = (name: string) => (isSelected(name) ? prepareOpenapiGenerator() : undefined);
const missing = {
  "openapi-typescript": npmProblem,
  orval: npmProblem,
  "hey-api": npmProblem,
  "openapi-python-client": createVenv(at("venv"), "test/generated/python/requirements.txt"),
  "oapi-codegen": problemOf("go", "version"),
  "typescript-fetch": generatorProblem("typescript-fetch"),
  "openapi-generator python": generatorProblem("openapi-generator python"),
  "openapi-generator go": generatorProblem("openapi-generator go"),
  "openapi-generator java": generatorProblem("openapi-generator java"),
};
for (const [name, problem] of Object.entries(missing)) {
  if (problem && isSelected(name)) console.error(`SKIPPED: no client of ${name} was tested. ${problem}`);
}

function isSelected(name: string): boolean {
  return selected === undefined || selected.includes(name);
}

function skipped(name: keyof typeof missing): boolean {
  return !isSelected(name) || missing[name] !== undefined;
}

function prepareTypeScript(): string | undefined {
  cpSync("test/generated/typescript", at("typescript"), { recursive: true });
  const options = ["--no-audit", "--no-fund", "--prefer-offline"];
  return problemOf("npm", "install", "--prefix", at("typescript"), ...options);
}

/** Maven also downloads what the generated Java imports. */
function prepareOpenapiGenerator(): string | undefined {
  if (existsSync(at(OPENAPI_GENERATOR_JAR))) return undefined;
  const artifact = `-Dartifact=org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`;
  const copy = ["dependency:copy", artifact, `-DoutputDirectory=${FOLDER}`];
  return problemOf("mvn", "--quiet", "--batch-mode", ...copy);
}

let env: NodeJS.ProcessEnv;
let document: string;

const app = useTestApp();
beforeAll(async () => {
  const { secret } = await createPaidKey(operatorOf(app));
  env = { ...process.env, VX_URL: app.url, VX_KEY: secret };
  document = at("openapi.json");
  writeFileSync(document, await (await fetch(`${app.url}/openapi.json`)).text());
});

const RESULT = {
  generated: expect.stringMatching(/^This is a reply of the sandbox\./),
  chat: expect.stringMatching(/^This is a reply of the sandbox\./),
  refused: "model_not_found",
  ledger: "generation",
};

describe.skipIf(skipped("openapi-typescript"))("openapi-typescript", () => {
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

describe.skipIf(skipped("openapi-python-client"))("openapi-python-client", () => {
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

describe.skipIf(skipped("oapi-codegen"))("oapi-codegen", () => {
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

describe("TypeScript with functions or classes", () => {
  const folder = at("typescript");
  const generator = (name: string) => join(folder, "node_modules/.bin", name);

  test.skipIf(skipped("orval"))("orval", { timeout: TIMEOUT_MS }, async () => {
    const output = { target: "orval/vx.ts", client: "fetch", baseUrl: app.url };
    const config = { vx: { input: document, output } };
    writeFileSync(join(folder, "orval.config.mjs"), `export default ${JSON.stringify(config)};`);
    await run(generator("orval"), ["--config", "orval.config.mjs"], { cwd: folder });
    await expectCalls("orval");
  });

  test.skipIf(skipped("hey-api"))("hey-api", { timeout: TIMEOUT_MS }, async () => {
    await run(generator("openapi-ts"), ["--input", document, "--output", "hey-api"], { cwd: folder });
    await expectCalls("hey-api");
  });

  test.skipIf(skipped("typescript-fetch"))("typescript-fetch", { timeout: TIMEOUT_MS }, async () => {
    await generate("typescript-fetch", join(folder, "typescript-fetch"));
    await expectCalls("typescript-fetch");
  });

  /** Their imports have no file extension, as bundlers expect. */
  async function expectCalls(name: string): Promise<void> {
    const project = join(folder, `tsconfig.${name}.json`);
    writeFileSync(project, JSON.stringify({ extends: "./tsconfig.bundler.json", files: [`${name}.ts`] }));
    await run("tsc", ["--project", project]);
    const bundle = join(folder, `${name}.bundle.mjs`);
    await run("rolldown", [join(folder, `${name}.ts`), "--file", bundle, "--platform", "node"]);
    const { stdout } = await run(process.execPath, [bundle], { env });
    expect(JSON.parse(stdout)).toEqual(RESULT);
  }
});

describe("openapi-generator", () => {
  const folder = (language: string) => at("openapi-generator", language);
  const programs = "test/generated/openapi-generator";

  test.skipIf(skipped("openapi-generator python"))("python", { timeout: TIMEOUT_MS }, async () => {
    await generate("python", folder("python"));
    copyFileSync(join(programs, "python/call.py"), join(folder("python"), "call.py"));
    const venv = at("openapi-generator/venv");
    expect(createVenv(venv, join(programs, "python/requirements.txt"))).toBe(undefined);
    const { stdout } = await run(join(venv, "bin/python"), ["call.py"], { cwd: folder("python"), env });
    expect(JSON.parse(stdout)).toEqual(RESULT);
  });

  test.skipIf(skipped("openapi-generator go"))("go", { timeout: TIMEOUT_MS }, async () => {
    await generate("go", join(folder("go"), "openapi"));
    for (const name of ["go.mod", "go.sum"]) rmSync(join(folder("go"), "openapi", name));
    // Its tests import a library for assertions.
    rmSync(join(folder("go"), "openapi/test"), { recursive: true });
    cpSync(join(programs, "go"), folder("go"), { recursive: true });
    await run("go", ["build", "-o", "call", "."], { cwd: folder("go") });
    const { stdout } = await run(join(folder("go"), "call"), [], { env });
    expect(JSON.parse(stdout)).toEqual(RESULT);
  });

  test.skipIf(skipped("openapi-generator java"))("java", { timeout: TIMEOUT_MS }, async () => {
    await generate("java", folder("java"));
    copyFileSync(join(programs, "java/Call.java"), join(folder("java"), "src/main/java/Call.java"));
    const compile = ["compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"];
    await run("mvn", ["--quiet", "--batch-mode", ...compile], { cwd: folder("java") });
    const classpath = readFileSync(join(folder("java"), "target/classpath"), "utf8");
    const { stdout } = await run("java", ["-cp", `target/classes:${classpath}`, "Call"], {
      cwd: folder("java"),
      env,
    });
    expect(JSON.parse(stdout)).toEqual(RESULT);
  });
});

async function generate(name: string, output: string): Promise<void> {
  rmSync(output, { recursive: true, force: true });
  const options = ["-jar", at(OPENAPI_GENERATOR_JAR), "generate", "-g", name, "-i", document, "-o", output];
  await run("java", options, { maxBuffer: 1 << 26 });
}
