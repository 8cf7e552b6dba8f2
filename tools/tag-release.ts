// Tags a release: npm run release:tag -- 0.2.0. Sets the version of the server, the clients and the chart, dates the section of
// the changelog, commits and tags. Does not push: the last line prints the command. The workflow `release` publishes the tag.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { compareReleases, RELEASE } from "../src/database/schema/release.ts";

const version = process.argv[2] ?? "";
const heading = `## ${version} (unreleased)`;
const changelog = readFileSync("CHANGELOG.md", "utf8");

if (!/^\d+\.\d+\.\d+$/.test(version)) fail("usage: npm run release:tag -- <major.minor.patch>");
if (compareReleases(version, RELEASE) < 0) fail(`${version} is older than the current release ${RELEASE}`);
if (git("status", "--porcelain") !== "") fail("the work tree has changes; commit them first");
if (git("tag", "--list", `v${version}`) !== "") fail(`the tag v${version} exists`);
if (!changelog.includes(`${heading}\n`)) fail(`CHANGELOG.md has no section "${heading}"`);

const day = new Date().toISOString().slice(0, 10);
writeFileSync("CHANGELOG.md", changelog.replace(heading, `## ${version} (${day})`));
if (version !== RELEASE) setVersions();
git("commit", "--all", "--message", `Release ${version}`);
// Go finds the versions of a module in a folder by tags with its path.
for (const tag of [`v${version}`, `clients/go/v${version}`]) git("tag", "--annotate", tag, "--message", `vx ${version}`);
console.log(`Release ${version} is committed and tagged. Publish it with: git push --follow-tags`);

/** The clients for Python and Go get their version from the generator. */
function setVersions(): void {
  const npm = ["version", version, "--no-git-tag-version"];
  execFileSync("npm", npm, { stdio: "ignore" });
  execFileSync("npm", npm, { stdio: "ignore", cwd: "clients/typescript" });
  const chart = readFileSync("deploy/helm/vx/Chart.yaml", "utf8");
  writeFileSync("deploy/helm/vx/Chart.yaml", chart.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`));
  execFileSync("npm", ["run", "generate"], { stdio: "ignore" });
}

function git(...args: string[]): string {
  return execFileSync("git", args, { encoding: "utf8" }).trim();
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
