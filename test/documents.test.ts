import { existsSync, globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const DOCUMENTS = ["README.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md")];

/** Paths in backticks; a path with a placeholder, such as `src/api/<service>-service.ts`, names no file. */
const PATH = /`((?:src|test|docs|tools|bench|proto|gen|\.ci|\.github)\/[\w./-]+)`/g;

test.each(DOCUMENTS)("every path that %s names exists", (document) => {
  const paths = [...readFileSync(document, "utf8").matchAll(PATH)].map(([, path]) => path as string);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});

test.each(DOCUMENTS)("every file that %s links to exists", (document) => {
  const links = [...readFileSync(document, "utf8").matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)];
  const base = new URL(document, `file://${process.cwd()}/`);
  expect(
    links.filter(([, link]) => !existsSync(new URL(link as string, base))).map(([, link]) => link),
  ).toEqual([]);
});
