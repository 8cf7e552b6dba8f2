import { globSync, readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { memoryFolder } from "./test/support/memory-folder.ts";

// Tests that need more than `npm ci` installs, or that take long: npm run test:extra -- NAME. docs/testing.md describes them.
const EXTRAS = [
  "accountant",
  "browser",
  "python",
  "llama",
  "sdks",
  "agents",
  "generated",
  "grpc",
  "foreign-limits",
  "collector",
  "dashboards",
  "own",
  "printed",
  "backup",
  "split",
  "citus",
  "package",
  "image",
  "compose",
  "chart",
  "unit",
  "proxies",
  "stripe",
];
const isExtra = process.env.VX_TEST_EXTRA === "1";

/** Temporary files of the tests and their programs. The extras also install and build programs, which may need more space. */
const folder = isExtra ? undefined : memoryFolder();
if (folder !== undefined) process.env.TMPDIR ??= folder;

/** Tests that measure memory. They run first, each file in its own process. */
const MEASURED = ["test/field/memory.test.ts", "test/server/floods.test.ts", "test/upstreams/floods.test.ts"];

/** Tests of crashes, stops and lost databases share no process with other tests. */
const ISOLATED = ["test/database/embedded/**/*.test.ts", "test/operations/**/*.test.ts"];

/** Small files that take long. Vitest starts large files first, and one process would run these alone at the end. */
const LONG = ["test/differential/differential.test.ts", "test/field/large-work.test.ts", "test/fuzz/fuzz.test.ts"];

const include = ["test/**/*.test.ts"];

/**
 * Files with fake timers. In a process with a server that other files share, they would also fake its timers: what it schedules meanwhile
 * never happens, and it stays unready, or does not notice revoked keys.
 */
const FAKE_TIMERS = globSync(include).filter((path) => /useFakeTimers\(\{ toFake: \["set/.test(readFileSync(path, "utf8")));

/** The other files share processes that load the code once, which saves 0.4 s of CPU time per file. */
const notShared = [...EXTRAS.map((name) => `test/${name}/**`), ...MEASURED, ...LONG, ...ISOLATED, ...FAKE_TIMERS];
const projects = [
  { name: "measured", include: MEASURED, maxWorkers: 2, sequence: { groupOrder: 0 } },
  { name: "long", include: LONG, isolate: false, sequence: { groupOrder: 1 } },
  { name: "isolated", include: ISOLATED, exclude: FAKE_TIMERS, isolate: false, sequence: { groupOrder: 1 } },
  // Each file in its own process.
  { name: "timers", include: FAKE_TIMERS, setupFiles: ["test/support/runs.ts"], sequence: { groupOrder: 1 } },
  {
    name: "shared",
    include,
    exclude: notShared,
    isolate: false,
    // Random tests of the other projects import it.
    setupFiles: ["test/support/runs.ts"],
    sequence: { groupOrder: 1 },
  },
];
const extras = EXTRAS.map((name) => ({
  name,
  include: [`test/${name}/**/*.test.ts`],
  // It builds the same packages as "own", so it runs after it.
  sequence: { groupOrder: name === "printed" ? 1 : 0 },
}));

export default defineConfig({
  test: {
    projects: (isExtra ? extras : projects).map((test) => ({
      extends: true as const,
      test,
    })),
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/waits.ts", "test/support/declared-values.ts"],
    // As long as those of test/support/waits.ts.
    expect: { poll: { timeout: 20_000 } },
    // More than the two cores that the suite is made for: many tests wait for servers and databases.
    maxWorkers: 3,
    // A limit for tests that hang, not for slow ones: other programs may share the machine.
    testTimeout: 120_000 * Number(process.env.VX_TEST_EXPLORE ?? 1),
    // Longer than a test waits for a line of a server that it starts, so that a failure shows the output.
    hookTimeout: 60_000,
    reporters: process.env.VX_TEST_REPORT ? ["default", "json"] : ["default"],
    outputFile: { json: process.env.VX_TEST_REPORT ?? "" },
  },
});
