import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { clientEnv } from "../support/client-env.ts";
import { clientCommand, clientExample } from "../support/client-examples.ts";
import {
  LARGE_CALL,
  type LimitInit,
  limitedPayer,
  MAX_TOKENS,
  ONE_LARGE_CALL,
  ONE_SLOW_CALL,
  SLOW_CALL,
} from "../support/limited-payer.ts";
import { SANDBOX_MODEL, startMetered } from "../support/metered.ts";
import { preparePython, pythonEnv, STUBS } from "../support/python.ts";

const missing = preparePython();
if (missing !== undefined) console.error(`SKIPPED: no client for Python was tested. ${missing}`);

const run = promisify(execFile);

describe.skipIf(missing !== undefined)("from Python", () => {
  let env: NodeJS.ProcessEnv;

  const app = useTestApp();
  beforeAll(async () => {
    env = pythonEnv(await clientEnv(app));
  });

  const python = (...args: string[]) => run("python", args, { env });
  const atThisServer = (code: string) => code.replaceAll("127.0.0.1:8080", new URL(app.url).host);

  /** The last lines that the test runner prints. */
  const passed = /Ran [1-9]\d* tests? in .*\n\nOK\n$/;

  test.each(["openai_client", "openai_features", "anthropic_client"])("%s works with another address and key", async (name) => {
    expect((await python(`test/python/${name}.py`)).stderr).toMatch(passed);
  });

  test("limits make the clients wait for running calls, and stop when a window is used up", async () => {
    const metered = await startMetered();
    const keysFor = async (limits: readonly LimitInit[]) => {
      const keyOf = async (limit: LimitInit) => [limit.metric, (await limitedPayer(metered, [limit])).secret];
      const keysOf = async (sdk: string) => [sdk, Object.fromEntries(await Promise.all(limits.map(keyOf)))];
      return JSON.stringify(Object.fromEntries(await Promise.all(["openai", "anthropic"].map(keysOf))));
    };
    const limitsEnv = {
      VX_URL: metered.app.url,
      VX_MODEL: SANDBOX_MODEL,
      VX_MAX_TOKENS: String(MAX_TOKENS),
      VX_SLOW_CALL: SLOW_CALL,
      VX_LARGE_CALL: LARGE_CALL,
      VX_WAITING_KEYS: await keysFor(ONE_SLOW_CALL),
      VX_USED_UP_KEYS: await keysFor(ONE_LARGE_CALL),
    };
    const { stderr } = await run("python", ["test/python/limits_client.py"], {
      env: { ...env, ...limitsEnv },
    }).catch((error) => error);
    expect(stderr).toMatch(passed);
    await metered.stop();
  });

  test.each(["from openai", "from anthropic import"])("the example with %s in docs/clients.md prints a reply", async (words) => {
    const example = atThisServer(clientExample("python", words));
    expect((await python("-c", example)).stdout).toMatch(/^This is a reply of the sandbox\./);
  });

  describe("over gRPC, with generated stubs", () => {
    beforeAll(async () => {
      // The packages are those of the virtual environment.
      await run("sh", ["-c", clientCommand("npm ci && npm run").replace("npm ci && ", "")], { env });
      const command = clientCommand("python -m grpc_tools.protoc").replaceAll("_out=.", `_out=${STUBS}`);
      await run("sh", ["-c", command], { env });
      await run("sh", ["-c", command.replace("vx/v1/me.proto", "vx/v1/generate.proto")], { env });
    });

    test("unary calls, streams and the details of errors work", async () => {
      expect((await python("test/python/grpc_client.py")).stderr).toMatch(passed);
    });

    test("the gRPC example in docs/clients.md prints the key and the balance", async () => {
      const example = atThisServer(clientExample("python", "import grpc"));
      expect((await python("-c", example)).stdout).toMatch(/^vx_live_\w{4}….{4} \$\d/);
    });
  });
});
