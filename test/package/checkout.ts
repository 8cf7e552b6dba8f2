import { execFileSync } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";

/** Copies the files of this checkout, changed ones too, into a repository without changes. */
export function copyCheckout(folder: string): void {
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const files = execFileSync("git", list, { encoding: "utf8" }).split("\0").filter(Boolean);
  const deleted = execFileSync("git", ["ls-files", "-z", "--deleted"], { encoding: "utf8" }).split("\0");
  for (const file of files) if (!deleted.includes(file)) cpSync(file, join(folder, file));
  const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args]);
  git("init", "--quiet");
  git("add", "--all");
  git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "test");
}
