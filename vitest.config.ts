import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    // Two servers and a database share the machine with the tests.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    reporters: process.env.VX_TEST_REPORT ? ["default", "json"] : ["default"],
    outputFile: { json: process.env.VX_TEST_REPORT ?? "" },
  },
});
