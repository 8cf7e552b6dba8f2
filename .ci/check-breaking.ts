// Compares the .proto files with those of the base commit: origin/main, or HEAD~1 if origin/main is HEAD or
// missing. Third-party protos are not committed, so the current copies are used for both.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const base = baseCommit();
if (base === undefined) {
  console.log("no earlier commit has .proto files");
} else {
  const folder = mkdtempSync(join(tmpdir(), "vx-breaking-"));
  try {
    const archive = execFileSync("git", ["archive", base, "proto", "buf.yaml"], { maxBuffer: 1 << 28 });
    execFileSync("tar", ["-x", "-C", folder], { input: archive });
    symlinkSync(join(process.cwd(), "node_modules"), join(folder, "node_modules"));
    cpSync(".buf", join(folder, ".buf"), { recursive: true });
    const against = join(folder, "proto");
    execFileSync("buf", ["breaking", "proto", "--against", against], { stdio: "inherit" });
  } catch {
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function baseCommit(): string | undefined {
  const head = git("rev-parse", "HEAD");
  const remote = git("rev-parse", "--verify", "--quiet", "origin/main");
  const candidates = [
    remote !== undefined && remote !== head ? remote : undefined,
    git("rev-parse", "--verify", "--quiet", "HEAD~1"),
  ];
  return candidates.find((commit) => commit !== undefined && git("cat-file", "-e", `${commit}:buf.yaml`) !== undefined);
}

function git(...args: string[]): string | undefined {
  try {
    return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}
