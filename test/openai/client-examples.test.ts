import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { clientExample } from "../support/client-examples.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";

const app = useTestApp();

test("the examples for the OpenAI SDK in docs/clients.md print replies", async () => {
  const first = clientExample("ts", 'from "openai"').replace("http://127.0.0.1:8080", app.url);
  const example = `${first}console.log();\n${clientExample("ts", "runTools")}`;
  const { secret } = await createPaidKey(operatorOf(app));
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module-typescript", "--eval", example], {
    env: { ...process.env, VX_KEY: secret },
  });
  const [streamed, ofTools, parsed] = stdout.split("\n");
  expect(streamed).toMatch(/^This is a reply of the sandbox\./);
  expect(ofTools).toMatch(/^This is a reply of the sandbox\./);
  expect(parsed).toMatch(/\w/);
});
