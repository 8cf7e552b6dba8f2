// Compares the .proto files with those of the base commit: origin/main, or HEAD~1 if origin/main is HEAD or
// missing. Third-party protos are not committed, so the current copies are used for both.
//
// The service of the customer page repeated RPCs of vx.v1 until sessions could call those. What was removed with them is accepted once:
// only if the base commit has the repetitions.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";

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
    const page = readFileSync(join(against, "vx/account/v1/account.proto"), "utf8");
    const config = page.includes("rpc ListKeys(") ? ["--config", JSON.stringify(configWithoutRepetitions())] : [];
    execFileSync("buf", ["breaking", "proto", "--against", against, ...config], { stdio: "inherit" });
  } catch {
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** buf.yaml, except that the service of the page may lose RPCs, and that the policy of a method may change its options for members. */
function configWithoutRepetitions(): object {
  const config = parse(readFileSync("buf.yaml", "utf8"));
  const options = ["ENUM_VALUE_NO_DELETE", "FIELD_SAME_NAME", "FIELD_SAME_JSON_NAME", "FIELD_SAME_TYPE"];
  const accepted = {
    RPC_NO_DELETE: ["proto/vx/account"],
    ...Object.fromEntries(options.map((rule) => [rule, ["proto/vx/options"]])),
  };
  return { ...config, breaking: { ...config.breaking, ignore_only: accepted } };
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
