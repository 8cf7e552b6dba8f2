#!/usr/bin/env node
// Plain JavaScript, so that any Node can print an error. A Node that cannot run TypeScript starts the Node that npm
// installed beside the dependencies.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major > 22 || (major === 22 && minor >= 18)) {
  // Later starts load compiled code, which takes less time and memory.
  nodeModule.enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/vx", import.meta.url)));
  // Objects that outlive one burst of calls must not make V8 allocate later ones of their kind in the old generation.
  setFlagsFromString("--no-allocation-site-pretenuring");
  await import("./main.ts");
} else {
  const node = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));
  if (!existsSync(node)) {
    console.error(`vx needs Node 22.18 or newer, this is ${process.versions.node}`);
    process.exit(1);
  }
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], {
    // Over the channel, the child notices a kill that this process cannot forward: see main.ts.
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  // Signals are sent to this process, so they are forwarded, and its exit code is that of the child.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
