import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseTemplate, TemplateError } from "../../src/server/rest/http-rule.ts";
import { DuplicateRouteError, RouteTrie } from "../../src/server/rest/rest-routes.ts";
import { runs } from "../support/runs.ts";

/** The parsed template: segments, then each variable with its segments. */
function understood(text: string) {
  const { segments, variables, verb } = parseTemplate(text);
  return {
    path: segments.map((segment) => (segment.kind === "literal" ? segment.text : segment.kind)).join("/"),
    ...(variables.length === 0
      ? {}
      : { variables: variables.map(({ fieldPath, start, end }) => `${fieldPath} ${start}-${end}`) }),
    ...(verb === undefined ? {} : { verb }),
  };
}

describe("templates", () => {
  test.each<[string, object]>([
    ["/v1", { path: "v1" }],
    ["/v1/a.b~c-d_e", { path: "v1/a.b~c-d_e" }],
    ["/v1/%C3%A4", { path: "v1/ä" }],
    ["/v1/*", { path: "v1/*" }],
    ["/v1/**", { path: "v1/**" }],
    ["/*/x/*", { path: "*/x/*" }],
    ["/**", { path: "**" }],
    ["/v1/{a}", { path: "v1/*", variables: ["a 1-2"] }],
    ["/v1/{a=*}", { path: "v1/*", variables: ["a 1-2"] }],
    ["/v1/{a=**}", { path: "v1/**", variables: ["a 1-2"] }],
    ["/v1/{a.b_c.d=x/*/y}", { path: "v1/x/*/y", variables: ["a.b_c.d 1-4"] }],
    ["/v1/{a=x/*}/{b=y/**}", { path: "v1/x/*/y/**", variables: ["a 1-3", "b 3-5"] }],
    ["/v1/{a=x}", { path: "v1/x", variables: ["a 1-2"] }],
    ["/v1:verb", { path: "v1", verb: "verb" }],
    ["/v1/{a}:verb", { path: "v1/*", variables: ["a 1-2"], verb: "verb" }],
    ["/v1/{a=**}:do.it", { path: "v1/**", variables: ["a 1-2"], verb: "do.it" }],
  ])("%s", (text, expected) => {
    expect(understood(text)).toEqual(expected);
  });

  // biome-ignore format: a few lines
  test.each([
    "", "v1", "/", "//", "/v1/", "/v1//x", "/v1/{", "/v1/{}", "/v1/{a", "/v1/{a=", "/v1/{a=}", "/v1/{a=x/}", "/v1/}",
    "/v1/{a}}", "/v1/{a}b", "/v1/b{a}", "/v1/{a={b}}", "/v1/{a=x/{b}}", "/v1/{1a}", "/v1/{a.}", "/v1/{.a}", "/v1/{a..b}",
    "/v1/{a-b}", "/v1/{a}/{a}", "/v1/**/x", "/v1/**/*", "/v1/{a=**}/x", "/v1/{a=**/x}", "/v1/***", "/v1/*x", "/v1/x*", "/v1:",
    "/v1:a:b", "/v1:a/b", "/v1/x:{a}", "/v1/a b", "/v1/a?b", "/v1/a#b", "/v1/ä", "/v1/%", "/v1/%zz", "/v1/%ff",
  ])("%j is not a template", (text) => {
    expect(() => parseTemplate(text)).toThrow(TemplateError);
  });

  test("an error names the position in the template", () => {
    expect(() => parseTemplate("/v1/{a=**}/x")).toThrow('the template "/v1/{a=**}/x" has a segment after "**"');
    expect(() => parseTemplate("/v1/{a}/{a}")).toThrow('names "a" twice');
  });

  test("any text is a template or a TemplateError", () => {
    const piece = fc.constantFrom("/", "*", "**", "{", "}", "=", ":", ".", "a", "b.c", "%41", "%", "ä");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          parseTemplate(pieces.join(""));
        } catch (error) {
          expect(error).toBeInstanceOf(TemplateError);
        }
      }),
      { numRuns: runs(3_000) },
    );
  });
});

/** A trie with a GET route for each template, named after the template. */
function trieOf(...templates: string[]): RouteTrie<string> {
  const trie = new RouteTrie<string>();
  for (const text of templates) trie.insert(parseTemplate(text), "GET", text, (route) => route);
  return trie;
}

/** The GET route of a path, with the matched segments. */
function findGet(trie: RouteTrie<string>, path: string) {
  return trie.find(path, (routes) => routes.get("GET"));
}

describe("the trie", () => {
  test.each<[string, string | undefined, string[]]>([
    ["a literal has priority over *", "/v1/x", ["/v1/*", "/v1/x", "/v1/**"]],
    ["* has priority over **", "/v1/*", ["/v1/**", "/v1/*"]],
    ["** is the last choice", "/v1/**", ["/v1/**", "/v1/*/y"]],
    ["the order of registration has no effect", "/v1/x", ["/v1/x", "/v1/**", "/v1/*"]],
  ])("for /v1/x, %s", (_name, found, templates) => {
    expect(findGet(trieOf(...templates), "/v1/x")?.picked).toBe(found);
  });

  test.each<[string, string, string[]]>([
    ["/v1/a/c", "/v1/*/c", ["/v1/a/b", "/v1/*/c"]],
    ["/v1/a/b/d", "/v1/*/b/d", ["/v1/a/b/c", "/v1/*/b/d", "/v1/**"]],
    ["/v1/a/b/e", "/v1/**", ["/v1/a/b/c", "/v1/*/b/d", "/v1/**"]],
    ["/v1/a/b", "/v1/a/**", ["/v1/*/b", "/v1/a/**"]],
    ["/v1/a/b:go", "/v1/*/b:go", ["/v1/a/b", "/v1/*/b:go"]],
    ["/v1/a/x:go", "/v1/a/*", ["/v1/a/*", "/v1/**:stop"]],
    ["/v1/a/x:stop", "/v1/**:stop", ["/v1/a/*", "/v1/**:stop"]],
    ["/v1/a", "/v1/a/**", ["/v1/a/**", "/v1/**"]],
    ["/v1", "/v1/**", ["/v1/**"]],
    ["/", "/**", ["/**", "/*", "/v1"]],
    ["/:go", "/**:go", ["/**:go", "/*:go"]],
    ["/v1/x:go", "/v1/x:go", ["/v1/x%3Ago", "/v1/x:go"]],
  ])("%s matches %s after backtracking", (path, found, templates) => {
    expect(findGet(trieOf(...templates), path)?.picked).toBe(found);
  });

  test.each([
    ["/v1/", ["/v1", "/v1/*", "/v1/x"]],
    ["/v1/x/", ["/v1/x", "/v1/*"]],
    ["/v1//y", ["/v1/*/y"]],
    ["/v1", ["/v1/*"]],
    ["/V1", ["/v1"]],
    ["/v1/x:go", ["/v1/x"]],
    ["/v1/x", ["/v1/x:go"]],
    ["/v1/x:", ["/v1/x"]],
    ["/v1/__proto__", ["/v1/x"]],
    ["/v1/constructor:toString", ["/v1/x:go"]],
    ["/", ["/v1"]],
    ["/v1/a/b", ["/v1/a%2Fb"]],
  ])("%s has no match in %j", (path, templates) => {
    expect(trieOf(...templates).find(path, (routes) => routes)).toBe(undefined);
  });

  test("literals are decoded before the comparison; values stay encoded", () => {
    const trie = trieOf("/v1/%C3%A4/{a}");
    expect(findGet(trie, "/v1/%c3%a4/x%2Fy")?.segments).toEqual(["v1", "%c3%a4", "x%2Fy"]);
    expect(findGet(trie, "/v1/%ff/x")).toBe(undefined);
  });

  test("the verb follows the last colon of the last segment", () => {
    const trie = trieOf("/v1/{a}:go", "/v1/{a}");
    expect(findGet(trie, "/v1/x:y:go")?.segments).toEqual(["v1", "x:y"]);
    expect(findGet(trie, "/v1/x:y")?.picked).toBe("/v1/{a}");
    expect(findGet(trie, "/v1/:go")?.picked).toBe("/v1/{a}");
  });

  test("a node without the verb does not hide a less specific node that has it", () => {
    const trie = new RouteTrie<string>();
    for (const [verb, text] of [
      ["POST", "/v1/foo"],
      ["GET", "/v1/{name}"],
      ["PUT", "/v1/**"],
    ] as const)
      trie.insert(parseTemplate(text), verb, text, (route) => route);
    const find = (verb: string) => trie.find("/v1/foo", (routes) => routes.get(verb))?.picked;
    expect(["POST", "GET", "PUT", "DELETE"].map(find)).toEqual(["/v1/foo", "/v1/{name}", "/v1/**", undefined]);
  });

  test("two equal routes are rejected with both names", () => {
    const trie = trieOf("/v1/{a}/x");
    const add = (text: string, verb: string) => trie.insert(parseTemplate(text), verb, text, (route) => route);
    expect(() => add("/v1/{b=*}/x", "GET")).toThrow(new DuplicateRouteError("/v1/{a}/x and /v1/{b=*}/x have the same route"));
    add("/v1/{b}/x", "POST");
    add("/v1/{b}/x:go", "GET");
    expect([...trie.routes()].sort()).toEqual(["/v1/{a}/x", "/v1/{b}/x", "/v1/{b}/x:go"]);
  });

  test("finds the same route as a linear search through all templates", () => {
    const segment = fc.constantFrom("a", "b", "*");
    const template = fc
      .tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.constantFrom("", "/**"), fc.constantFrom("", ":go"))
      .map(([segments, rest, verb]) => `/${segments.join("/")}${rest}${verb}`);
    const path = fc
      .tuple(fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 4 }), fc.constantFrom("", ":go"))
      .map(([segments, verb]) => `/${segments.join("/")}${verb}`);
    fc.assert(
      fc.property(fc.uniqueArray(template, { maxLength: 6 }), path, (templates, wanted) => {
        const found = findGet(trieOf(...templates), wanted)?.picked;
        expect(found === undefined ? undefined : rank(found)).toBe(best(templates, wanted));
        if (found !== undefined) expect(fits(found, wanted)).toBe(true);
      }),
      { numRuns: runs(2_000) },
    );
  });
});

/** Templates with a verb first, then by segment: a literal, "*", "**". */
function best(templates: readonly string[], path: string): string | undefined {
  return templates
    .filter((template) => fits(template, path))
    .map(rank)
    .sort()
    .at(0);
}

function rank(template: string): string {
  const [path, verb] = template.split(":") as [string, string?];
  const kinds = path
    .split("/")
    .slice(1)
    .map((segment) => (segment === "**" ? "3" : segment === "*" ? "2" : "1"));
  return `${verb === undefined ? "2" : "1"}${kinds.join("")}`;
}

function fits(template: string, path: string): boolean {
  const [wanted, verb] = template.split(":") as [string, string?];
  if (verb !== undefined && !path.endsWith(`:${verb}`)) return false;
  const bare = verb === undefined ? path : path.slice(0, -verb.length - 1);
  const pattern = wanted.replaceAll("/**", "(/.+)?").replaceAll("/*", "/[^/]+");
  return new RegExp(`^${pattern}$`).test(bare);
}
