import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { clientEnv } from "../support/client-env.ts";
import { clientExample } from "../support/client-examples.ts";
import { CLIENTS, installPackages } from "../support/installed.ts";

const FOLDER = join(CLIENTS, "sdks");
const run = promisify(execFile);

const missing = installPackages("test/sdks/node", FOLDER);
if (missing !== undefined) console.error(`SKIPPED: no client for Node was tested. ${missing}`);

describe.skipIf(missing !== undefined)("from Node", () => {
  let env: NodeJS.ProcessEnv;

  const app = useTestApp();
  beforeAll(async () => {
    env = { ...process.env, ...(await clientEnv(app)) };
  });

  test("the scripts match the types of the clients", async () => {
    await run("tsc", ["--project", FOLDER]);
  });

  test.each(["openai", "anthropic", "ai-sdk", "langchain"])("%s works with another address and key", async (name) => {
    const args = ["--test", "--test-reporter=spec", `${name}.ts`];
    const { stdout } = await run(process.execPath, args, { cwd: FOLDER, env }).catch((error) => error);
    expect(stdout).toMatch(/pass [1-9]\d*\n/);
    expect(stdout).toMatch(/fail 0\n/);
    expect(stdout).toMatch(/skipped 0\n/);
  });

  test.each(["@anthropic-ai/sdk", "@ai-sdk/anthropic", "@ai-sdk/openai", "@langchain/openai"])(
    "the example for %s in docs/clients.md prints a reply",
    async (name) => {
      const example = clientExample("ts", `from "${name}"`).replace("http://127.0.0.1:8080", app.url);
      const args = ["--input-type=module-typescript", "--eval", example];
      const { stdout } = await run(process.execPath, args, { cwd: FOLDER, env });
      expect(stdout).toMatch(/^This is a reply of the sandbox\./);
    },
  );
});
