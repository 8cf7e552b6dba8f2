import { defineConfig } from "vitest/config";

// Tests that need more than `npm ci` installs: `npm run test:browser`, `npm run test:python`, `npm run clients`.
const EXTRAS = ["browser", "python", "generated"];
const extra = EXTRAS.find((name) => process.env[`VX_TEST_${name.toUpperCase()}`] === "1");

/**
 * These ask servers of their own, or call what keeps nothing between two calls: files that share a process load the
 * code once, which halves their time. What kills, measures or counts in its own process has one to itself.
 */
const TOGETHER = ["api", "codec", "domain", "rules", "rest"].map((name) => `test/${name}/**/*.test.ts`);

const include = [`test/${extra ? `${extra}/` : ""}**/*.test.ts`];
const exclude = extra ? [] : EXTRAS.map((name) => `test/${name}/**`);
const together = { name: "together", include: TOGETHER, isolate: false };
const apart = { name: "apart", include, exclude: [...exclude, ...TOGETHER] };

export default defineConfig({
  test: {
    projects: (extra ? [{ name: extra, include }] : [together, apart]).map((test) => ({
      extends: true as const,
      test,
    })),
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
