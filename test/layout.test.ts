import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";

/**
 * What the parts of src may import of each other: calls flow from transport to store, and so do imports. A part is
 * a folder, or a file that stands directly in src. A new folder finds its place here before it is used.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  domain: [],
  embedded: [],
  store: ["domain"],
  policy: ["domain", "gen"],
  models: ["domain"],
  tokens: ["domain"],
  upstreams: ["domain"],
  gate: ["policy", "store", "domain"],
  metering: ["gate", "store", "upstreams", "domain"],
  services: ["metering", "gate", "policy", "store", "models", "upstreams", "domain", "gen"],
  interceptors: ["services", "gate", "policy", "domain", "gen", "log.ts", "metrics.ts"],
  wire: ["policy", "domain"],
  rest: ["interceptors", "policy", "domain", "gen"],
  transport: [
    "wire",
    "rest",
    "interceptors",
    "services",
    "gate",
    "policy",
    "domain",
    "gen",
    "log.ts",
    "metrics.ts",
  ],
  pages: ["transport", "rest", "models", "domain"],
};

/** Calls carry what admission read of the key, so the parts above may name its type; they never ask the store. */
const MAY_NAME_TYPES_OF: Record<string, readonly string[]> = {
  interceptors: ["store"],
  transport: ["store"],
};

/** Packages, and who alone may import them. */
const ONLY_IN: readonly { packages: RegExp; parts: readonly string[] }[] = [
  { packages: /^postgres$/, parts: ["store"] },
  {
    packages: /^@connectrpc\//,
    parts: ["transport", "interceptors", "cli", "public-server.ts", "operator-server.ts"],
  },
  { packages: /^@bufbuild\/protovalidate$/, parts: ["interceptors"] },
  { packages: /^node:(http|http2|https)$/, parts: ["transport", "rest", "pages", "upstreams", "cli"] },
  // The settings are checked by trying whether certificate and key can be used.
  { packages: /^node:tls$/, parts: ["transport", "rest", "pages", "upstreams", "cli", "tls-files.ts"] },
  {
    packages: /^node:net$/,
    parts: ["transport", "rest", "store", "embedded", "upstreams", "cli", "app.ts", "workers.ts"],
  },
  { packages: /^node:child_process$/, parts: ["embedded", "cli"] },
  { packages: /^node:cluster$/, parts: ["workers.ts", "main.ts", "cli"] },
  { packages: /^commander$/, parts: ["cli"] },
  { packages: /^pino$/, parts: ["log.ts"] },
  { packages: /^prom-client$/, parts: ["metrics.ts", "workers.ts", "worker-metrics.ts"] },
  { packages: /^zod$/, parts: ["config.ts", "models", "upstreams"] },
  { packages: /^yaml$/, parts: ["models"] },
  { packages: /^gpt-tokenizer\//, parts: ["tokens"] },
];

type Import = {
  readonly file: string;
  readonly part: string;
  readonly target: string;
  readonly typesOnly: boolean;
};

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .sort();
const sources = new Map(files.map((file) => [file, readFileSync(join("src", file), "utf8")]));
const imports: readonly Import[] = files.flatMap((file) =>
  [
    ...(sources.get(file) ?? "").matchAll(
      /^(?:import|export)\b[^;]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm,
    ),
  ].map((match) => ({
    file,
    part: partOf(file),
    target: match[1] ?? match[2] ?? match[3] ?? "",
    typesOnly: /^(import|export) type\b/.test(match[0]),
  })),
);

/** The folder, or the file itself where it stands directly in src; "gen" for generated code. */
function partOf(path: string): string {
  return path.startsWith("../gen/") ? "gen" : (path.split("/")[0] as string);
}

function resolved({ file, target }: Import): string {
  return normalize(join(dirname(file), target));
}

const own = imports.filter(({ target }) => target.startsWith("."));
const foreign = imports.filter(({ target }) => !target.startsWith("."));

test("there is something to look at", () => {
  expect(files.length).toBeGreaterThan(50);
  expect(own.length).toBeGreaterThan(100);
});

test("every folder has its place in the order", () => {
  const folders = new Set(files.filter((file) => file.includes("/")).map(partOf));
  expect([...folders].filter((folder) => folder !== "cli" && !(folder in MAY_IMPORT))).toEqual([]);
});

describe.each(Object.entries(MAY_IMPORT))("src/%s", (part, allowed) => {
  test(`imports of ours only ${allowed.length === 0 ? "itself" : allowed.join(", ")}`, () => {
    const wrong = own
      .filter((one) => one.part === part)
      .filter((one) => {
        const types = one.typesOnly ? (MAY_NAME_TYPES_OF[part] ?? []) : [];
        return ![part, ...allowed, ...types].includes(partOf(resolved(one)));
      })
      .map(({ file, target }) => `src/${file} imports ${target}`);
    expect(wrong).toEqual([]);
  });
});

test("nothing imports the command line but the program itself", () => {
  const wrong = own.filter(
    (one) => partOf(resolved(one)) === "cli" && !["cli", "main.ts"].includes(one.part),
  );
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test.each(ONLY_IN)("$packages is imported only in $parts", ({ packages, parts }) => {
  const wrong = foreign
    .filter(({ part, target }) => packages.test(target) && !parts.includes(part))
    .map(({ file, target }) => `src/${file} imports ${target}`);
  expect(wrong).toEqual([]);
});

test.each(["domain", "store"])("src/%s knows no messages", (part) => {
  const wrong = foreign.filter((one) => one.part === part && one.target.startsWith("@bufbuild/"));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test("src/rest knows descriptors and errors, nothing about keys or money, apart from the examples", () => {
  const known = new Set(
    own
      .filter(({ part, file }) => part === "rest" && !/^rest\/openapi\/.*examples\.ts$/.test(file))
      .map(resolved)
      .filter((path) => path.startsWith("domain/")),
  );
  expect([...known].sort()).toEqual(["domain/errors.ts", "domain/shares.ts"]);
});

test("no files import each other in a circle", () => {
  const next = new Map<string, string[]>();
  for (const one of own) next.set(one.file, [...(next.get(one.file) ?? []), resolved(one)]);
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(" → "));
    if (path.includes(file) || done.has(file)) return;
    for (const target of next.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

test("clock and randomness are passed in: domain, services and store do not fetch them", () => {
  const fetched = /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.now\b/;
  const wrong = files.filter(
    (file) => ["domain", "services", "store"].includes(partOf(file)) && fetched.test(sources.get(file) ?? ""),
  );
  expect(wrong).toEqual([]);
});

test("no file has more than 300 lines", () => {
  const long = files.filter((file) => (sources.get(file) ?? "").split("\n").length > 301);
  expect(long).toEqual([]);
});
