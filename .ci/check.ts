// All checks that must pass before a change lands. The fastest to fail come first.
import { spawnSync } from "node:child_process";

const steps: [name: string, command: string, ...args: string[]][] = [
  ["format and lint", "biome", "ci", "--colors=off", "--error-on-warnings"],
  ["files", "node", ".ci/check-files.ts"],
  ["mutants", "node", ".ci/check-mutants.ts"],
  ["generated code is fresh", "node", ".ci/check-generated.ts"],
  ["types", "tsc", "-p", "."],
  ["types of the pages", "tsc", "-p", "console"],
  ["proto lint", "buf", "lint", "proto"],
  ["proto format", "buf", "format", "--diff", "--exit-code", "proto"],
  ["install size", "node", ".ci/check-install-size.ts"],
  ["openapi lint", "npm", "run", "--silent", "lint:openapi"],
  ["proto breaking", "node", ".ci/check-breaking.ts"],
];

for (const [name, command, ...args] of steps) {
  const startedAt = performance.now();
  process.stdout.write(`${name} … `);
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(status === 0 ? `ok (${seconds} s)\n` : "FAILED\n");
  if (status !== 0) {
    process.stdout.write(stdout + stderr);
    process.exit(1);
  }
}
