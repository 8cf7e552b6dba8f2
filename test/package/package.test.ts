import { execFileSync } from "node:child_process";
import { chownSync, copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { CLIENTS, installPackages } from "../support/installed.ts";
import { startServerProcess } from "../support/process.ts";
import { problemOf } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** An ordinary user with a name, which PostgreSQL needs. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

const home = createTemporaryFolder("package");
const tarball = join(home.path, "server.tgz");

beforeAll(() => {
  const packed = execFileSync("npm", ["run", "--silent", "build:package"], { encoding: "utf8" });
  copyFileSync(packed.trim(), tarball);
  if (isRoot) chownSync(home.path, NOBODY, NOBODY);
});
afterAll(() => home.remove());

test("the package has compiled code and its assets, no sources and no tests", () => {
  const files = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).trim().split("\n");
  expect(files).toContain("package/src/vx.js");
  expect(files).toContain("package/gen/openapi.json");
  expect(files.filter((file) => file.endsWith(".sql")).length).toBeGreaterThan(50);
  expect(files.filter((file) => /\.ts$|\/test\//.test(file))).toEqual([]);
});

const NODES: readonly (readonly [name: string, find: () => string])[] = [
  ["this Node", () => dirname(process.execPath)],
  ["the oldest Node", installOldestNode],
];

const problem = problemOf("npm", "view", "commander", "version");
if (problem !== undefined) console.warn(`SKIPPED: the package is not installed: ${problem}`);

describe.skipIf(problem !== undefined).each(process.env.VX_TEST_SHORT === "1" ? NODES.slice(0, 1) : NODES)(
  "with %s",
  (name, findNode) => {
    test("npx starts it in an empty folder, as an ordinary user, with a database and a demo key", async () => {
      const folder = join(home.path, name.replaceAll(" ", "-"));
      mkdirSync(folder);
      if (isRoot) chownSync(folder, NOBODY, NOBODY);
      const npx = 'cd "$1" && exec npx --yes --package "$2" vx serve';
      const server = startServerProcess(
        {
          HOME: home.path,
          npm_config_cache: join(home.path, "cache"),
          // For npm: a network may have its own certificate authority.
          NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS ?? "",
          VX_WORKERS: "2",
          PATH: [findNode(), process.env.PATH].join(delimiter),
        },
        { command: asOrdinaryUser("sh", "-c", npx, "sh", folder, tarball), ownGroup: true },
      );
      const url = await server.line(/vx ready on (\S+)/);
      const key = await server.line(/vx_live_\w+/);
      expect(readdirSync(folder)).toEqual([".vx"]);

      // So long that a thread counts its tokens, which loads its own file.
      const content = "What is a ledger? ".repeat(20_000);
      const response = await fetch(`${url}/v1/generate`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "vx-sandbox-large", messages: [{ role: "user", content }] }),
      });
      expect(await response.json()).toMatchObject({ message: { role: "assistant" } });
      expect((await fetch(`${url}/account`)).status).toBe(200);

      // As Ctrl-C in a terminal: npx does not forward signals to the server, and may exit before it.
      await server.end("SIGINT");
      await vi.waitFor(() => expect(server.stderr()).toContain('"msg":"stopped"'), { timeout: 30_000 });
      expect(server.stderr()).not.toContain('"level":"warn"');
    });
  },
);

function asOrdinaryUser(program: string, ...args: string[]): [string, ...string[]] {
  if (!isRoot) return [program, ...args];
  return ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", program, ...args];
}

/** The folder of the program. */
function installOldestNode(): string {
  const folder = join(CLIENTS, "oldest-node");
  const problem = installPackages("test/package/oldest-node", folder);
  if (problem !== undefined) throw new Error(`cannot install Node 22: ${problem}`);
  return join(folder, "node_modules", ".bin");
}
