import { defineConfig } from "vitest/config";

// What needs more than the install has tests of its own: `npm run test:browser`, `npm run test:python`.
const EXTRAS = ["browser", "python"];
const extra = EXTRAS.find((name) => process.env[`VX_TEST_${name.toUpperCase()}`] === "1");

export default defineConfig({
  test: {
    include: [`test/${extra ? `${extra}/` : ""}**/*.test.ts`],
    exclude: extra ? [] : EXTRAS.map((name) => `test/${name}/**`),
    globalSetup: ["test/support/global-setup.ts"],
    // Two servers and a database share the machine with the tests.
    maxWorkers: 2,
    // A bound for what hangs, not for what is slow: other programs may share the machine.
    testTimeout: 60_000,
    hookTimeout: 30_000,
    reporters: process.env.VX_TEST_REPORT ? ["default", "json"] : ["default"],
    outputFile: { json: process.env.VX_TEST_REPORT ?? "" },
  },
});
