import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createTemporaryFolder } from "./support/temporary-folder.ts";

const folder = createTemporaryFolder("tracked-files");
afterAll(() => folder.remove());

function check(cwd: string): string {
  return spawnSync(process.execPath, [resolve(".ci/check-files.ts")], { cwd, encoding: "utf8" }).stderr;
}

test("npm run check finds no fault in the files of this repository", () => {
  expect(check(".")).toBe("");
});

test("npm run check names files that nothing refers to, binaries in other folders, large files, and exceptions without a file", () => {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder.path });
  git("init", "--quiet");
  mkdirSync(join(folder.path, "docs"));
  const files: Record<string, string | Buffer> = {
    "library-1.0-py3-none-any.whl": Buffer.of(80, 75, 0),
    "docs/forgotten.md": "This is docs/forgotten.md.",
    "docs/large.md": "- ".repeat(150_001),
    "docs/page.png": Buffer.of(137, 0),
    "start.ts": "// docs/large.md docs/page.png",
    ".gitignore": "start.ts.map",
    "vitest.config.ts": "// start.ts",
    "biome.json": "vitest.config.ts",
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder.path, name), content);
  git("add", "--all");
  const problems = check(folder.path).trim().split("\n");
  // Most tables are about files that this repository does not have.
  const isOfTable = (line: string) => line.startsWith(".ci/check-files.ts: no file matches");
  expect(problems.filter(isOfTable)).toContain('.ci/check-files.ts: no file matches "docs/decisions/*.md"; remove it from FOUND');
  expect(problems.filter((line) => !isOfTable(line))).toEqual([
    expect.stringMatching(/^docs\/forgotten\.md: no other file names it;/),
    expect.stringMatching(/^docs\/large\.md: 300002 bytes, more than 300000;/),
    expect.stringMatching(/^library-1\.0-py3-none-any\.whl: a binary;/),
    expect.stringMatching(/^library-1\.0-py3-none-any\.whl: no other file names it;/),
  ]);
});
