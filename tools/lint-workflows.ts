// Checks the workflows of GitHub with actionlint. Needs Go; without it or its registry, says that the check is skipped.
import { spawnSync } from "node:child_process";

const ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

const isReady = spawnSync("go", ["run", ACTIONLINT, "-version"], { stdio: "ignore" }).status === 0;
if (isReady) process.exitCode = spawnSync("go", ["run", ACTIONLINT], { stdio: "inherit" }).status ?? 1;
else console.error("SKIPPED: the workflows were not checked. Actionlint needs Go and its module proxy.");
