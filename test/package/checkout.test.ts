// The commands of the README in a fresh checkout, with the Node versions that it names.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { installNode } from "../support/installed.ts";
import { startServerProcess } from "../support/process.ts";
import { problemOf } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { unusedPort } from "../support/unused-port.ts";
import { copyCheckout } from "./checkout.ts";

const run = promisify(execFile);
/** npm ci downloads 350 MB. */
const TIMEOUT_MS = 900_000;
/** With the npm that each comes with. The README says which they are. */
const NODES = [
  { node: "20.20.2", npm: "10" },
  { node: "22.23.2", npm: "10" },
  { node: "24.21.0", npm: "11" },
];

const home = createTemporaryFolder("checkout");
afterAll(() => home.remove(), TIMEOUT_MS);

test("the README names the versions that are tested", () => {
  const majors = NODES.map(({ node }) => Number.parseInt(node, 10));
  expect(readFileSync("README.md", "utf8")).toContain(
    `Node.js ${majors[0]} or newer with npm, on Linux or macOS (tested with ${majors.join(", ").replace(/, (\d+)$/, " and $1")} on Linux)`,
  );
});

const problem = problemOf("npm", "view", "commander", "version");
if (problem !== undefined) console.warn(`SKIPPED: no checkout was installed: ${problem}`);

describe.skipIf(problem !== undefined).each(process.env.VX_TEST_SHORT === "1" ? NODES.slice(0, 1) : NODES)(
  "with Node $node",
  ({ node, npm }) => {
    test("npm ci prints no warning, npm start starts the server, and npx vx calls it", { timeout: TIMEOUT_MS }, async () => {
      const installed = installNode(node, npm);
      if ("problem" in installed) throw new Error(installed.problem);
      const folder = join(home.path, node);
      mkdirSync(folder);
      copyCheckout(folder);
      const env = { ...process.env, PATH: [installed.bin, process.env.PATH].join(delimiter) };
      const inFolder = (command: string, ...args: string[]) => run(command, args, { cwd: folder, env });

      expect((await inFolder("node", "--version")).stdout).toBe(`v${node}\n`);
      const { stdout, stderr } = await inFolder("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline");
      expect(stderr).toBe("");
      expect(stdout).toMatch(/^added \d+ packages in \S+$/m);
      // The scripts of package.json run on the copy of Node, whatever Node npm runs on.
      expect((await inFolder("npm", "exec", "--", "node", "--version")).stdout).toMatch(/^v24\./);

      const adminPort = String(await unusedPort());
      const server = startServerProcess(
        { PATH: env.PATH, HOME: home.path, VX_ADMIN_PORT: adminPort },
        { command: ["sh", "-c", 'cd "$1" && exec npm start', "sh", folder], ownGroup: true },
      );
      const key = await server.line(/vx_live_\w+/);
      const url = await server.line(/vx ready on (\S+)/);
      const response = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
      expect(response.status).toBe(200);
      const calling = { cwd: folder, env: { ...env, VX_ADMIN_PORT: adminPort } };
      expect((await run("npx", ["vx", "accounts", "list"], calling)).stdout).toContain("demo");
      expect((await fetch(`${url}/account`)).status).toBe(200);
      expect((await fetch(`http://127.0.0.1:${adminPort}`)).status).toBe(200);
      expect(readFileSync(join(folder, ".vx/admin-token"), "utf8")).not.toBe("");
      await server.end("SIGINT");
    });
  },
);
