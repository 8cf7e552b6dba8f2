import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createVenv, problemOf } from "../support/python.ts";
import { unusedPort } from "../support/unused-port.ts";
import { describedWebhooks } from "../support/webhook-bodies.ts";
import { examplesOf, FOLDER, inFolder } from "./programs.ts";

/** The receivers of docs/events.md get requests that the npm package signed. */

const AT = join(FOLDER, "webhooks");
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
const GO_MODULE = `module example

go 1.25

require github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
`;

const RECEIVERS = [
  { language: "js", file: "receiver.mjs", command: [process.execPath, join(AT, "receiver.mjs")] },
  { language: "python", file: "receiver.py", command: [join(AT, "venv/bin/python"), join(AT, "receiver.py")] },
  { language: "go", file: "main.go", command: [join(AT, "receiver")] },
] as const;

/** Builds a receiver. Returns the reason if that fails. */
function prepare({ language, file }: (typeof RECEIVERS)[number], port: number): string | undefined {
  mkdirSync(AT, { recursive: true });
  const [code = ""] = examplesOf("docs/events.md", language);
  writeFileSync(join(AT, file), code.replace("8000", String(port)));
  switch (language) {
    case "js":
      return undefined;
    case "python":
      return createVenv(join(AT, "venv"), "test/own/python/webhook-requirements.txt");
    case "go":
      writeFileSync(join(AT, "go.mod"), GO_MODULE);
      return (
        problemOf("go", "version") ?? inFolder(AT, "go", "mod", "tidy") ?? inFolder(AT, "go", "build", "-o", "receiver", ".")
      );
  }
}

for (const receiver of RECEIVERS) {
  const port = await unusedPort();
  const problem = prepare(receiver, port);
  if (problem !== undefined) console.error(`SKIPPED: the receiver in ${receiver.language}. ${problem}`);

  describe.skipIf(problem !== undefined)(`the receiver in ${receiver.language}`, () => {
    let output: Interface;
    let stop: () => Promise<void>;
    const nextLine = async () => String((await once(output, "line"))[0]);

    beforeAll(async () => {
      const [command, ...args] = receiver.command;
      const program = spawn(command, args, {
        env: { ...process.env, VX_WEBHOOK_SECRET: SECRET },
        stdio: ["ignore", "pipe", "ignore"],
      });
      output = createInterface({ input: program.stdout });
      stop = async () => {
        program.kill();
        await once(program, "exit");
      };
      expect(await nextLine()).toBe("listening");
    });
    afterAll(() => stop());

    const post = async (headers: Record<string, string>, body: string) =>
      (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body })).status;

    test.each([...describedWebhooks])("accepts %s", async (type, { requestBody }) => {
      const body = JSON.stringify(requestBody.content["application/json"].example);
      const line = nextLine();
      expect(await post(signed(body), body)).toBe(204);
      expect(await line).toMatch(new RegExp(`^${type} .`));
    });

    const BODY = JSON.stringify({ type: "balance.low", data: { reason: "Grüße 😀" } });

    test("accepts either of the two signatures of a rotation", async () => {
      // All of the same second, which the signatures contain.
      const at = Date.now();
      const signatures = [OTHER_SECRET, SECRET].map((secret) => signed(BODY, { secret, at })["webhook-signature"]);
      for (const both of [signatures, signatures.toReversed()]) {
        const headers = { ...signed(BODY, { at }), "webhook-signature": both.join(" ") };
        expect(await post(headers, BODY)).toBe(204);
      }
    });

    test.each([
      ["another body", signed(`${BODY} `)],
      ["another secret", signed(BODY, { secret: OTHER_SECRET })],
      ["another id", { ...signed(BODY), "webhook-id": "evt_2" }],
      ["an old signature", signed(BODY, { at: Date.now() - 301_000 })],
      ["a signature of the future", signed(BODY, { at: Date.now() + 1_000_000 })],
      ["no signature", {}],
      ["a malformed signature", { ...signed(BODY), "webhook-signature": "v1 v1,é" }],
    ])("refuses %s", async (_, headers) => {
      expect(await post(headers, BODY)).toBe(400);
    });

    test("refuses a body that is too large", async () => {
      const body = "x".repeat(20_001);
      expect(await post(signed(body), body)).toBe(400);
    });
  });
}

/** The headers of a delivery. */
function signed(body: string, { secret = SECRET, at = Date.now() } = {}): Record<string, string> {
  return {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at / 1000)),
    "webhook-signature": new Webhook(secret).sign("evt_1", new Date(at), body),
  };
}
