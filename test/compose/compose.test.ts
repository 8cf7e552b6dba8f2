import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLIENTS } from "../support/installed.ts";
import { problemOf } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** The part of the resolved model that the tests read. */
type Service = {
  readonly healthcheck?: { readonly disable?: boolean };
  readonly volumes?: readonly { readonly type: string; readonly source: string }[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly read_only?: boolean;
};
type Project = {
  readonly services: Readonly<Record<string, Service>>;
  readonly configs?: Readonly<Record<string, { readonly content?: string }>>;
};

const program = join(CLIENTS, "compose");
const folder = createTemporaryFolder("compose");
const file = join(folder.path, "deploy/compose.yaml");
const problem = buildProgram();
if (problem !== undefined) console.warn(`SKIPPED: the Compose file is not checked: ${problem}`);

function buildProgram(): string | undefined {
  mkdirSync(CLIENTS, { recursive: true });
  return problemOf("go", "-C", "test/compose/go", "build", "-o", resolve(program), ".");
}

function load(path: string): Project {
  const env = { ...process.env, VX_ADMIN_TOKEN: "token" };
  const { status, stdout, stderr } = spawnSync(program, [path], { encoding: "utf8", env });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return JSON.parse(stdout) as Project;
}

describe.skipIf(problem !== undefined)("the Compose file", () => {
  let services: Project["services"];
  const secrets = join(folder.path, "deploy/compose/secrets");

  beforeAll(() => {
    // Without the secrets of the developer, who may have some.
    cpSync("deploy", join(folder.path, "deploy"), { recursive: true, filter: (path) => !/\/secrets$|\.env$/.test(path) });
    execFileSync(join(folder.path, "deploy/compose/create-secrets"));
    services = load(file).services;
  });
  afterAll(() => folder.remove());

  test("is valid and names files that exist", () => {
    expect(Object.keys(services).sort()).toEqual(["grafana", "migrate", "otel-collector", "postgres", "prometheus", "vx"].sort());
    const sources = Object.values(services)
      .flatMap(({ volumes = [] }) => volumes)
      .filter(({ type }) => type === "bind")
      .map(({ source }) => source);
    expect(sources.length).toBeGreaterThan(5);
    expect(sources.filter((source) => !existsSync(source))).toEqual([]);
  });

  test("of a Citus cluster is valid, and the server does not use the login of the schema's owner", () => {
    const { services: nodes, configs } = load(join(folder.path, "deploy/citus.yaml"));
    expect(Object.keys(nodes).sort()).toEqual(["cluster", "coordinator", "migrate", "vx", "worker-1", "worker-2"].sort());
    expect(configs?.["cells.yaml"]?.content).toContain("postgres://vx_server@coordinator/vx\n    engine: citus");
  });

  test("is refused if a name is misspelt", () => {
    const bad = join(folder.path, "bad.yaml");
    execFileSync("sh", ["-c", 'sed "s/stop_grace_period/stop_grace_periods/" "$1" > "$2"', "sh", file, bad]);
    expect(spawnSync(program, [bad], { encoding: "utf8" }).stderr).toContain("stop_grace_periods");
  });

  test("the server does not use the login of the schema's owner, and its root file system is read-only", () => {
    const login = (name: string) => new URL(services[name]?.environment?.DATABASE_URL ?? "").username;
    expect([login("migrate"), login("vx")]).toEqual(["owner", "vx_server"]);
    expect(services.vx?.read_only).toBe(true);
  });

  test("secrets are random, in files that other users cannot reach, and created once", () => {
    const values = readdirSync(secrets).map((name) => readFileSync(join(secrets, name), "utf8"));
    expect(new Set(values).size).toBe(values.length);
    expect(values.every((value) => /^[0-9a-f]{48}$/.test(value))).toBe(true);
    expect(statSync(secrets).mode & 0o077).toBe(0);
    expect(statSync(join(folder.path, "deploy/compose/server.env")).mode & 0o077).toBe(0);
    expect(spawnSync(join(folder.path, "deploy/compose/create-secrets")).status).toBe(1);
  });
});
