import { existsSync, globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const DOCUMENTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...globSync("docs/**/*.md")];

/** Paths in backticks; a path with a placeholder, such as `src/<feature>/service.ts`, names no file. */
const PATH = /`((?:src|test|docs|tools|bench|proto|gen|\.ci|\.github)\/[\w./-]+)`/g;

test.each(DOCUMENTS)("every path that %s names exists", (document) => {
  const paths = [...readFileSync(document, "utf8").matchAll(PATH)].map(([, path]) => path as string);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});

/** Files that tell users how to install something. */
const INSTRUCTIONS = [
  ...DOCUMENTS,
  ...globSync(["clients/*/README.md", "deploy/**/*.{md,yaml}", "examples/README.md", "src/server/pages/*.html"]),
];

test.each(INSTRUCTIONS)("%s tells nobody to get a package or an image from a registry that does not have it", (file) => {
  const { npm, pypi, go, server, images } = JSON.parse(readFileSync("clients/names.json", "utf8"));
  const names = [...new Set([npm, pypi, go, server])].map((name) => name.replaceAll(".", "\\."));
  // In a checkout, `npx vx` runs the command of the checkout.
  const installs = new RegExp(
    `(npm (install|i)|pip install|go get|npx|--package)( -\\S+)* (${names.join("|")})(?![\\w/])|${images}/`,
    "g",
  );
  expect(readFileSync(file, "utf8").match(installs) ?? []).toEqual([]);
});

test.each(DOCUMENTS)("every file that %s links to exists", (document) => {
  const links = [...readFileSync(document, "utf8").matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)];
  const base = new URL(document, `file://${process.cwd()}/`);
  expect(links.filter(([, link]) => !existsSync(new URL(link as string, base))).map(([, link]) => link)).toEqual([]);
});
