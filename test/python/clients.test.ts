import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { preparePython, pythonEnv, STUBS } from "../support/python.ts";
import { readmeCommand, readmeExample } from "../support/readme.ts";

const missing = preparePython();
if (missing !== undefined) console.error(`SKIPPED: no client for Python was tested. ${missing}`);

const run = promisify(execFile);

describe.skipIf(missing !== undefined)("from Python", () => {
  let app: TestApp;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    app = await startTestApp();
    const operator = operatorOf(app);
    env = pythonEnv({
      VX_URL: app.url,
      VX_HOST_AND_PORT: new URL(app.url).host,
      VX_KEY: (await createPaidKey(operator)).secret,
      VX_BROKE_KEY: (await createTestKey(operator)).secret,
      VX_NO_KEY: "vx_live_nobody",
    });
  });
  afterAll(() => app.stop());

  const python = (...args: string[]) => run("python", args, { env });
  const atThisServer = (code: string) => code.replaceAll("127.0.0.1:8080", new URL(app.url).host);

  /** The runner's own last words. */
  const passed = /Ran [1-9]\d* tests? in .*\n\nOK\n$/;

  test("OpenAI's client works with only its address and key changed", async () => {
    expect((await python("test/python/openai_client.py")).stderr).toMatch(passed);
  });

  test("the example for OpenAI's client in the README prints a reply", async () => {
    const example = atThisServer(readmeExample("python", "from openai"));
    expect((await python("-c", example)).stdout).toMatch(/^This is a reply of the sandbox\./);
  });

  describe("over gRPC, with stubs", () => {
    beforeAll(async () => {
      // As in a fresh clone; the packages are those of the virtual environment.
      rmSync(".buf", { recursive: true, force: true });
      await run("sh", ["-c", readmeCommand("npm ci && npm run").replace("npm ci && ", "")], { env });
      const command = readmeCommand("python -m grpc_tools.protoc").replaceAll("_out=.", `_out=${STUBS}`);
      await run("sh", ["-c", command], { env });
      await run(
        "sh",
        ["-c", command.replace("vx/v1/me.proto", "vx/v1/generate.proto vx/openai/v1/chat.proto")],
        {
          env,
        },
      );
    });

    test("unary calls, streams and the details of errors work", async () => {
      expect((await python("test/python/grpc_client.py")).stderr).toMatch(passed);
    });

    test("the example in the README prints key and balance", async () => {
      const example = atThisServer(readmeExample("python", "import grpc"));
      expect((await python("-c", example)).stdout).toMatch(/^vx_live_\w{4}….{4} \$\d/);
    });
  });
});
