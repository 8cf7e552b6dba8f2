import { type ExecFileOptions, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ERRORS } from "../../src/domain/errors.ts";
import { useOwnApp } from "../support/app.ts";
import { clientEnv } from "../support/client-env.ts";
import { installNode } from "../support/installed.ts";
import { unusedPort } from "../support/unused-port.ts";
import { describedWebhooks } from "../support/webhook-bodies.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import {
  examplesOf,
  GO,
  JAVA,
  PYTHON,
  prepareGo,
  prepareJava,
  preparePython,
  prepareRust,
  prepareTypeScript,
  RUST,
  TYPESCRIPT,
} from "./programs.ts";

const run = promisify(execFile);
/** Go downloads and compiles the libraries with the first build. */
const TIMEOUT_MS = 300_000;
/** The short form of CI tests only some of the clients. */
const selected = process.env.VX_OWN_CLIENTS?.split(",");
const isSelected = (name: string) => selected === undefined || selected.includes(name);

function reasonToSkip(name: string, prepare: () => string | undefined): string | undefined {
  if (!isSelected(name)) return "not selected";
  const problem = prepare();
  if (problem !== undefined) console.error(`SKIPPED: the client for ${name} was not tested. ${problem}`);
  return problem;
}

let proxy: FaultProxy;
let env: NodeJS.ProcessEnv;

const app = useOwnApp({ env: { VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.1" } });
beforeAll(async () => {
  proxy = await startFaultProxy(app.url);
  const className = (reason: string) =>
    `${reason.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase()).replace(/Error$/, "")}Error`;
  const others = ["invalid_operator_token", "insufficient_role", "invalid_report_signature", "last_admin"];
  const reasons = Object.entries(ERRORS)
    .filter(([reason]) => !others.includes(reason))
    .map(([reason, { code }]) => ({ reason, code: code.toLowerCase(), name: className(reason) }));
  env = { ...process.env, ...(await clientEnv(app)), VX_FAULT_URL: proxy.url, VX_REASONS: JSON.stringify(reasons) };
});
afterAll(async () => {
  await proxy.stop();
});

/** What the examples print. */
const REPLY = /^This is a reply of the sandbox\./;
const EVENT = /^evt_\w{26} key\.created\n/;

/** The examples of a README that end by themselves, or after their first output. Receivers of webhooks have a test of their own. */
const examplesToRun = (readme: string, language: string) =>
  examplesOf(readme, language).filter((code) => !code.includes("VX_WEBHOOK_SECRET"));

/** What a program prints, or the first of what it prints if it does not end. */
async function outputOf(code: string, command: string, args: readonly string[], options: ExecFileOptions) {
  if (!/watch\(|WatchEvents/i.test(code)) return await run(command, args, options);
  // Go runs a program as a child of its own.
  const program = spawn(command, args, { ...options, detached: true });
  const { value: line } = await createInterface({ input: program.stdout })[Symbol.asyncIterator]().next();
  process.kill(-(program.pid as number));
  return { stdout: `${line}\n`, stderr: "" };
}

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

/** The receiver of webhooks of a README accepts a signed event, and refuses it when it is changed. `start` gets its code. */
async function expectReceives(readme: string, language: string, start: (code: string) => [string, string[], string]) {
  const port = await unusedPort();
  const [code = ""] = examplesOf(readme, language).filter((each) => each.includes("VX_WEBHOOK_SECRET"));
  const [command, args, cwd] = start(code.replace("8000", String(port)));
  const program = spawn(command, args, { cwd, env: { ...env, VX_WEBHOOK_SECRET: SECRET }, detached: true });
  const lines = createInterface({ input: program.stdout });
  const nextLine = async () => String((await once(lines, "line"))[0]);
  expect(await nextLine()).toBe("listening");
  const body = JSON.stringify(describedWebhooks.get("webhook.test")?.requestBody.content["application/json"].example);
  const at = new Date();
  const headers = {
    "webhook-id": "test_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(SECRET).sign("test_1", at, body),
  };
  const post = async (text: string) => (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: text })).status;
  const line = nextLine();
  expect(await post(body)).toBe(204);
  expect(await line).toMatch(/^webhook\.test .*/);
  expect(await post(`${body} `)).toBe(400);
  process.kill(-(program.pid as number));
}

describe.skipIf(reasonToSkip("typescript", prepareTypeScript))("the npm package", () => {
  const readme = "clients/typescript/README.md";

  test("has types that match its tests, and passes them", async () => {
    await run("tsc", ["--project", TYPESCRIPT]);
    await expectNodeTests(process.execPath);
  });

  test.skipIf(selected)("works with the oldest Node that it supports", async () => {
    const node = installNode("18.20.8", "10");
    if ("problem" in node) console.error(`SKIPPED: Node 18 could not be installed: ${node.problem}`);
    else await expectNodeTests(join(node.bin, "node"));
  });

  async function expectNodeTests(node: string): Promise<void> {
    const tests = globSync(join(TYPESCRIPT, "compiled/*.test.js"));
    const { stdout } = await run(node, ["--test", ...tests], { cwd: TYPESCRIPT, env }).catch((error) => error);
    expect(stdout).toMatch(/fail 0\n/);
    expect(stdout).toMatch(/pass [1-9]\d*\n/);
  }

  test.each(examplesToRun(readme, "js").map((code, i) => [i, code] as const))(
    "example %i of its README runs",
    async (i, code) => {
      const file = join(TYPESCRIPT, `example-${i}.js`);
      writeFileSync(file, code);
      const { stdout, stderr } = await outputOf(code, process.execPath, [file], { cwd: TYPESCRIPT, env });
      if (code.includes("watch(")) expect(stdout).toMatch(EVENT);
      else if (code.includes("catch")) expect(stderr).toMatch(/^InvalidApiKeyError invalid_api_key req_/);
      else expect(stdout).toMatch(REPLY);
    },
  );

  test("the receiver of its README verifies events", () =>
    expectReceives(readme, "js", (code) => {
      writeFileSync(join(TYPESCRIPT, "receiver.js"), code);
      return [process.execPath, ["receiver.js"], TYPESCRIPT];
    }));

  test("can be required", async () => {
    const code = 'const { Client } = require("vx-client"); new Client().me().then((me) => console.log(me.balance))';
    const { stdout } = await run(process.execPath, ["--input-type=commonjs", "--eval", code], { cwd: TYPESCRIPT, env });
    expect(stdout).toMatch(/^\$\d/);
  });
});

const pythonProblem = reasonToSkip("python", preparePython);

describe.skipIf(pythonProblem)("the wheel", () => {
  const python = join(PYTHON, "venv/bin/python");
  const at = { cwd: PYTHON };

  test("has types that mypy accepts, and so do the calls of its tests", async () => {
    await run(python, ["-m", "mypy", "--strict", ...globSync(resolve("clients/python/tests/*.py"))], at);
    await run(python, ["-m", "mypy", "--config-file", resolve("clients/python/pyproject.toml")], {
      cwd: resolve("clients/python"),
    });
  });

  test("passes its tests", { timeout: 180_000 }, async () => {
    const args = ["-m", "unittest", "discover", "--start-directory", resolve("clients/python/tests")];
    const { stderr } = await run(python, args, { ...at, env }).catch((error) => error);
    expect(stderr).toMatch(/Ran [1-9]\d* tests? in .*\n\nOK\n$/);
  });

  test.each(examplesToRun("clients/python/README.md", "python").map((code, i) => [i, code] as const))(
    "example %i of its README runs",
    async (_, code) => {
      const { stdout } = await outputOf(code, python, ["-c", code], { ...at, env });
      if (code.includes("watch(")) expect(stdout).toMatch(EVENT);
      else expect(stdout).toMatch(code.includes("except") ? /^InvalidApiKeyError invalid_api_key req_/ : REPLY);
    },
  );
});

describe.skipIf(pythonProblem)("the receiver of the README for Python", () => {
  test("verifies events", () =>
    expectReceives("clients/python/README.md", "python", (code) => [join(PYTHON, "venv/bin/python"), ["-c", code], PYTHON]));
});

describe.skipIf(pythonProblem)("the wheel beside stubs of its user", () => {
  const python = join(PYTHON, "venv/bin/python");
  const folder = join(PYTHON, "stubs");

  beforeAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const includes = ["proto", ".buf", "node_modules/google-proto-files"].flatMap((path) => ["-I", path]);
    const out = [`--python_out=${folder}`, `--grpc_python_out=${folder}`];
    const protos = [...globSync("*.proto", { cwd: "proto/vx/v1" }).map((name) => `vx/v1/${name}`)];
    const imported = ["vx/options/v1/options.proto", "buf/validate/validate.proto"];
    await run("npm", ["run", "generate:protos"]);
    await run(python, ["-m", "grpc_tools.protoc", ...includes, ...out, ...protos, ...imported]);
  });

  const CLIENT = "import vx; reply = vx.Client().generate(model='vx-sandbox-small', messages=MESSAGES)";
  const STUBS = "from vx.v1 import generate_pb2, generate_pb2_grpc, me_pb2; sent = generate_pb2.Message(role='user')";
  test.each([
    ["the client first", [CLIENT, STUBS]],
    ["the stubs first", [STUBS, CLIENT]],
  ])("works in one process, %s", async (_, imports) => {
    const messages = "MESSAGES = [{'role': 'user', 'content': 'What is a ledger?'}]";
    const last = "print(reply.message.content, type(reply.message) is generate_pb2.Message, sent.role)";
    const code = [messages, ...imports, last].join("\n");
    const { stdout } = await run(python, ["-c", code], { cwd: folder, env });
    expect(stdout).toMatch(REPLY);
    expect(stdout).toMatch(/ False user\n$/);
  });
});

describe.skipIf(reasonToSkip("go", prepareGo))("the Go module", () => {
  test("passes its tests", { timeout: TIMEOUT_MS }, async () => {
    await run("go", ["vet", "./..."], { cwd: "clients/go", env });
    const { stdout } = await run("go", ["test", "-count=1", "."], { cwd: "clients/go", env }).catch((error) => error);
    expect(stdout).toMatch(/^ok\s/m);
  });

  test.each(examplesToRun("clients/go/README.md", "go").map((code, i) => [i, code] as const))(
    "example %i of its README runs",
    { timeout: TIMEOUT_MS },
    async (_, code) => {
      writeFileSync(join(GO, "main.go"), code);
      const { stdout } = await outputOf(code, "go", ["run", "."], { cwd: GO, env });
      expect(stdout).toMatch(code.includes("WatchEvents") ? EVENT : REPLY);
    },
  );

  test("the receiver of its README verifies events", { timeout: TIMEOUT_MS }, () =>
    expectReceives("clients/go/README.md", "go", (code) => {
      writeFileSync(join(GO, "main.go"), code);
      return ["go", ["run", "."], GO];
    }),
  );
});

test("the generated code of the wheel and of the Go module matches the protos", { timeout: TIMEOUT_MS }, async () => {
  const { stderr } = await run(process.execPath, ["tools/generate-clients.ts", "--check"]);
  if (stderr !== "") console.error(stderr);
});

/** What the examples print for a key with and without credit. */
const EXAMPLES = [
  ["VX_KEY", REPLY],
  ["VX_BROKE_KEY", /^Add credit to the account\.\n$/],
] as const;

describe.skipIf(reasonToSkip("java", prepareJava))("the example for Java", () => {
  test.each(EXAMPLES)("runs with %s", async (key, output) => {
    const classpath = `target/classes:${readFileSync(join(JAVA, "target/classpath"), "utf8").trim()}`;
    const { stdout } = await run("java", ["-cp", classpath, "Main"], { cwd: JAVA, env: { ...env, VX_KEY: env[key] } });
    expect(stdout).toMatch(output);
  });
});

describe.skipIf(reasonToSkip("rust", prepareRust))("the example for Rust", () => {
  test.each(EXAMPLES)("runs with %s", async (key, output) => {
    const { stdout } = await run(join(RUST, "target/debug/vx-example"), [], { env: { ...env, VX_KEY: env[key] } });
    expect(stdout).toMatch(output);
  });
});
