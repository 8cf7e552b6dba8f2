// Compiles the package twice: ES modules and CommonJS.
import { execFileSync } from "node:child_process";
import { cpSync, rmSync, writeFileSync } from "node:fs";

const options = { cwd: import.meta.dirname, stdio: "inherit" } as const;
rmSync(new URL("dist", import.meta.url), { recursive: true, force: true });
execFileSync("tsc", [], options);
const commonJs = ["--module", "commonjs", "--verbatimModuleSyntax", "false", "--outDir", "dist/cjs"];
execFileSync("tsc", commonJs, options);
writeFileSync(new URL("dist/cjs/package.json", import.meta.url), '{ "type": "commonjs" }\n');
cpSync(new URL("../../LICENSE", import.meta.url), new URL("LICENSE", import.meta.url));
