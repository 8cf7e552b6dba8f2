import { defineConfig } from "vitest/config";

// The tests of the pages need a browser: `npm run test:browser`.
const browser = process.env.VX_TEST_BROWSER === "1";

export default defineConfig({
  test: {
    include: browser ? ["test/browser/**/*.test.ts"] : ["test/**/*.test.ts"],
    exclude: browser ? [] : ["test/browser/**"],
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
