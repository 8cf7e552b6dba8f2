import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

/** One folder for each capability. A feature uses the stores and the functions of others, but never their services. */
const FEATURES = [
  "accounts",
  "anthropic",
  "api",
  "audit",
  "events",
  "failures",
  "generations",
  "keys",
  "ledger",
  "limits",
  "members",
  "openai",
  "operators",
  "payments",
  "plans",
  "prices",
  "usage",
  "webhooks",
];

/** The folders of src, from the top to the bottom: each may import its own line and those below. */
const ORDER: readonly (readonly string[])[] = [
  ["main.ts"],
  ["cli"],
  ["app"],
  ["server"],
  FEATURES,
  ["upstreams", "tokens"],
  ["models"],
  ["database", "telemetry"],
  ["codec"],
  ["rules"],
  ["domain"],
];

/** The folders that may not import others of their line. */
const SEPARATE = ["upstreams", "tokens", "database", "telemetry"];

/** Packages, and the only folders, or files, that may import them. */
const ONLY_IN: readonly { packages: RegExp; places: readonly string[] }[] = [
  { packages: /^postgres$/, places: ["database/"] },
  { packages: /^@connectrpc\//, places: ["server/", "app/", "cli/"] },
  { packages: /^@bufbuild\/protovalidate$/, places: ["rules/"] },
  { packages: /^node:(http|http2|https)$/, places: ["server/", "upstreams/", "cli/"] },
  // The settings are checked by trying whether certificate and key can be used.
  { packages: /^node:tls$/, places: ["server/", "upstreams/", "cli/", "app/settings/tls.ts"] },
  {
    packages: /^node:net$/,
    places: [
      "server/",
      "database/driver/",
      "database/embedded/",
      "upstreams/",
      "cli/",
      "app/",
      "webhooks/",
      // Its lists of addresses, without connections.
      "domain/image.ts",
      "domain/network.ts",
    ],
  },
  { packages: /^node:child_process$/, places: ["database/embedded/", "cli/"] },
  { packages: /^node:cluster$/, places: ["app/workers.ts", "main.ts", "cli/"] },
  { packages: /^commander$/, places: ["cli/"] },
  { packages: /^stripe$/, places: ["payments/stripe/"] },
  { packages: /^openid-client$/, places: ["server/sign-in/oidc-client.ts"] },
  { packages: /^pino$/, places: ["telemetry/log.ts"] },
  { packages: /^@opentelemetry\//, places: ["telemetry/otel/"] },
  { packages: /^prom-client$/, places: ["telemetry/", "app/workers.ts"] },
  {
    packages: /^zod$/,
    places: [
      "app/settings/config.ts",
      "app/settings/cells.ts",
      "app/settings/leak-keys.ts",
      "app/settings/telemetry.ts",
      "models/",
      "upstreams/",
    ],
  },
  { packages: /^yaml$/, places: ["models/", "app/settings/cells.ts"] },
  { packages: /^gpt-tokenizer\//, places: ["tokens/count-tokens.ts", "tokens/token-bytes.ts"] },
  // A second context makes V8 compile worse code for the whole process (docs/decisions/0003-runtime-settings.md).
  { packages: /^node:vm$/, places: [] },
  { packages: /^tinypool$/, places: ["tokens/counting-thread.ts"] },
];

type Import = {
  readonly file: string;
  readonly part: string;
  readonly target: string;
  readonly typesOnly: boolean;
  /** By import(), when it is needed. */
  readonly isLazy: boolean;
};

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .sort();
const sources = new Map(files.map((file) => [file, readFileSync(join("src", file), "utf8")]));
const imports: readonly Import[] = files.flatMap((file) =>
  [
    ...(sources.get(file) ?? "").matchAll(/^(?:import|export)\b[^;]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm),
  ].map((match) => ({
    file,
    part: partOf(file),
    target: match[1] ?? match[2] ?? match[3] ?? "",
    typesOnly: /^(import|export) type\b/.test(match[0]),
    isLazy: match[3] !== undefined,
  })),
);

/** The folder, or the file if it is directly in src; "gen" for generated code, "sql" for the calls of SQL functions. */
function partOf(path: string): string {
  if (path.startsWith("../gen/sql/")) return "sql";
  return path.startsWith("../gen/") ? "gen" : (path.split("/")[0] as string);
}

function resolved({ file, target }: Import): string {
  return normalize(join(dirname(file), target));
}

const own = imports.filter(({ target }) => target.startsWith("."));
const foreign = imports.filter(({ target }) => !target.startsWith("."));

test("the source files are found", () => {
  expect(files.length).toBeGreaterThan(50);
  expect(own.length).toBeGreaterThan(100);
});

test("every folder has its place in the order, and only the entry point is a file outside them", () => {
  const folders = new Set(files.filter((file) => file.includes("/")).map(partOf));
  expect([...folders].filter((folder) => !ORDER.flat().includes(folder))).toEqual([]);
  expect(files.filter((file) => !file.includes("/"))).toEqual(["main.ts"]);
});

test("nothing under src imports the generators in tools", () => {
  expect(own.filter((one) => resolved(one).startsWith("../tools/")).map(({ file }) => file)).toEqual([]);
});

test("imports go down the order of folders", () => {
  const lineOf = (part: string) => ORDER.findIndex((line) => line.includes(part));
  const wrong = own
    .map((one) => ({ ...one, to: partOf(resolved(one)) }))
    .filter(({ to }) => to !== "gen" && to !== "sql")
    .filter(
      ({ part, to }) => lineOf(to) < lineOf(part) || (to !== part && lineOf(to) === lineOf(part) && SEPARATE.includes(part)),
    )
    .map(({ file, target }) => `src/${file} imports ${target}`);
  expect(wrong).toEqual([]);
});

test("messages are imported from the rules upwards, and calls of SQL functions only in the database and the features", () => {
  const wrong = own.filter((one) => {
    const to = partOf(resolved(one));
    if (to === "gen") return ["domain", "database", "upstreams", "tokens", "models", "telemetry"].includes(one.part);
    return to === "sql" && ![...FEATURES, "database", "app", "cli"].includes(one.part);
  });
  expect(wrong.map(({ file, target }) => `src/${file} imports ${target}`)).toEqual([]);
});

test("the service of a feature is imported by no other feature, except the service of operators", () => {
  const wrong = own.filter((one) => {
    const target = resolved(one);
    const isOther = FEATURES.includes(one.part) && partOf(target) !== one.part && one.file !== "operators/service.ts";
    return isOther && /\/([a-z-]+-)?service\.ts$/.test(target) && target !== "api/define-service.ts";
  });
  expect(wrong.map(({ file, target }) => `src/${file} imports ${target}`)).toEqual([]);
});

test("only the entry point imports the command line", () => {
  const wrong = own.filter((one) => partOf(resolved(one)) === "cli" && !["cli", "main.ts"].includes(one.part));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test.each(ONLY_IN)("$packages is imported only in $places", ({ packages, places }) => {
  const wrong = foreign
    .filter(({ file, target }) => packages.test(target) && !places.some((place) => file.startsWith(place)))
    .map(({ file, target }) => `src/${file} imports ${target}`);
  expect(wrong).toEqual([]);
});

test.each(["domain", "database"])("src/%s imports no messages", (part) => {
  const wrong = foreign.filter((one) => one.part === part && one.target.startsWith("@bufbuild/"));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test("SQL functions are called by gen/sql/calls.ts, and by name only in the driver", () => {
  const named = /\.call(?:<[^(]*>)?\(\s*"/;
  const wrong = files.filter((file) => !file.startsWith("database/driver/") && named.test(sources.get(file) ?? ""));
  expect(wrong).toEqual([]);
});

test("src/codec uses descriptors, errors and turns, but neither keys nor money", () => {
  const known = new Set(
    own
      .filter(({ part }) => part === "codec")
      .map(resolved)
      .filter((path) => path.startsWith("domain/")),
  );
  expect([...known].sort()).toEqual([
    "domain/base64.ts",
    "domain/csv.ts",
    "domain/errors.ts",
    "domain/fairness.ts",
    "domain/json.ts",
  ]);
});

test("src/generations is independent of the protocol", () => {
  const words = /\b(http|https|grpc|header|headers|Connect|REST)\b/;
  const wrong = files.filter((file) => file.startsWith("generations/") && words.test(sources.get(file) ?? ""));
  expect(wrong).toEqual([]);
});

test("there are no import cycles", () => {
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

test("a start loads no package of a feature that its settings do not use", () => {
  const optional = /^(yaml|undici|openid-client|stripe|gpt-tokenizer\/.*|@opentelemetry\/(?!api$).*)$/;
  const loaded = (all: readonly Import[]) => all.filter(({ typesOnly, isLazy }) => !typesOnly && !isLazy);
  // Nothing else is loaded before the settings are read.
  const reached = new Set(["main.ts", "cli/serve.ts", "app/app.ts", "app/workers.ts"]);
  for (const file of reached) {
    for (const one of loaded(own)) if (one.file === file) reached.add(resolved(one));
  }
  expect(reached.size).toBeGreaterThan(50);
  const wrong = loaded(foreign).filter(({ file, target }) => reached.has(file) && optional.test(target));
  expect(wrong.map(({ file, target }) => `${file}: ${target}`)).toEqual([]);
});

test("the pages in console import only generated code, roles, forms of keys, amounts, charges and CSV of this repository", () => {
  const pageFiles = readdirSync("console", { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
  const wrong = pageFiles.flatMap((file) =>
    [...readFileSync(join("console", file), "utf8").matchAll(/\bfrom "(\.[^"]+)"/g)]
      .map((match) => normalize(join("console", dirname(file), match[1] ?? "")))
      .filter(
        (path) =>
          !/^((console|gen)\/|src\/domain\/(anthropic-clients|csv|key-query|limit|member|money|operator|price|scope)\.ts$)/.test(
            path,
          ),
      )
      .map((path) => `console/${file} imports ${path}`),
  );
  expect(wrong).toEqual([]);
});

test("the pages in console do not import each other, only shared modules", () => {
  const wrong = ["account", "operator"].flatMap((page) =>
    readdirSync(`console/${page}`)
      .filter((file) => /from "\.\.\/(?!shared\/|\.\.\/)/.test(readFileSync(`console/${page}/${file}`, "utf8")))
      .map((file) => `console/${page}/${file}`),
  );
  expect(wrong).toEqual([]);
});

/** What runs by itself, beside calls. */
const OWN_CLOCK = /^(operators\/overview-feed|payments\/stripe\/stripe-payments|webhooks\/(deliverer|sender))\.ts$/;

test("domain and features get the clock and randomness as parameters", () => {
  const fetched = /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.now\b/;
  const wrong = files.filter(
    (file) => ["domain", ...FEATURES].includes(partOf(file)) && !OWN_CLOCK.test(file) && fetched.test(sources.get(file) ?? ""),
  );
  expect(wrong).toEqual([]);
});

test("only src/domain/lane.ts and the schema contain the number of lanes", () => {
  const number = /\b1_?02[34]\b/;
  const wrong = files.filter((file) =>
    (sources.get(file) ?? "").split("\n").some((line) => /lane/i.test(line) && number.test(line.replace(/"[^"]*"/g, ""))),
  );
  expect(wrong).toEqual(["domain/lane.ts"]);
});
