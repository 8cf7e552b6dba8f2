import { defineConfig } from "vitest/config";

// Tests that need more than `npm ci` installs: `npm run test:browser`, `npm run test:python`, `npm run clients`.
const EXTRAS = ["browser", "python", "generated"];
const extra = EXTRAS.find((name) => process.env[`VX_TEST_${name.toUpperCase()}`] === "1");

/** Tests that measure CPU time or memory. They run first, at most one per core. */
const MEASURED = [
  "test/codec/check-message.test.ts",
  "test/codec/reader.test.ts",
  "test/field/memory.test.ts",
  "test/server/floods.test.ts",
  "test/tokens/*.test.ts",
  "test/upstreams/create-upstreams.test.ts",
  "test/upstreams/floods.test.ts",
  "test/upstreams/sandbox.test.ts",
];

/**
 * Tests that start their own servers or test functions without state. Files that share a process load the code
 * once, which halves their time. Tests that kill, measure or count in their own process get one each.
 */
const SHARED = ["api", "codec", "domain", "rules", "rest"].map((name) => `test/${name}/**/*.test.ts`);

const include = [`test/${extra ? `${extra}/` : ""}**/*.test.ts`];
const extras = extra ? [] : EXTRAS.map((name) => `test/${name}/**`);

const projects = [
  { name: "measured", include: MEASURED, maxWorkers: 2, sequence: { groupOrder: 0 } },
  { name: "shared", include: SHARED, exclude: MEASURED, isolate: false, sequence: { groupOrder: 1 } },
  { name: "isolated", include, exclude: [...extras, ...MEASURED, ...SHARED], sequence: { groupOrder: 1 } },
];

export default defineConfig({
  test: {
    projects: (extra ? [{ name: extra, include }] : projects).map((test) => ({
      extends: true as const,
      test,
    })),
    globalSetup: ["test/support/global-setup.ts"],
    // More than the two cores that the suite is made for: many tests wait for servers and databases.
    maxWorkers: 3,
    // A limit for tests that hang, not for slow ones: other programs may share the machine.
    testTimeout: 60_000,
    hookTimeout: 30_000,
    reporters: process.env.VX_TEST_REPORT ? ["default", "json"] : ["default"],
    outputFile: { json: process.env.VX_TEST_REPORT ?? "" },
  },
});
