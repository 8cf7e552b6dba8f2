import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { vx } from "./support.ts";

const folder = createTemporaryFolder("completion");
const fileOf = (shell: string) => join(folder.path, `vx.${shell}`);

beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout, stderr } = await vx(["completion", shell]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    writeFileSync(fileOf(shell), stdout);
  }
});
afterAll(() => folder.remove());

test("the script is printed as a JSON string too", async () => {
  const [text, json] = [await vx(["completion", "fish"]), await vx(["completion", "fish", "--json"])];
  expect(JSON.parse(json.stdout)).toEqual({ shell: "fish", script: text.stdout });
});

/** What each shell offers for the last word of a line. */
const SHELLS = {
  bash: (line: string) =>
    run(
      "bash",
      `source ${fileOf("bash")}; COMP_WORDS=(${words(line)}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _vx
      printf '%s\\n' "\${COMPREPLY[@]}"`,
    ),
  // The functions of its completion system need a terminal: this shows what they would get.
  zsh: (line: string) =>
    run(
      "zsh",
      `compdef() { :; }; _files() { :; }; _describe() { print -rl -- \${(P)2} }; source ${fileOf("zsh")}
      words=(${words(line)}); CURRENT=$#words; _vx`,
    )
      .map((item) => item.split(":")[0] ?? "")
      .filter((item) => item.startsWith(line.split(" ").at(-1) ?? "")),
  fish: (line: string) => run("fish", `source ${fileOf("fish")}; complete -C '${line}'`).map((item) => item.split("\t")[0] ?? ""),
};

function run(shell: string, script: string): string[] {
  return execFileSync(shell, ["-c", script], { encoding: "utf8", env: { ...process.env, HOME: folder.path } })
    .split("\n")
    .filter(Boolean);
}

function words(line: string): string {
  return line
    .split(" ")
    .map((word) => `'${word}'`)
    .join(" ");
}

describe.each(Object.entries(SHELLS))("in %s", (shell, complete) => {
  const isInstalled = spawnSync(shell, ["-c", "true"]).status === 0;
  if (!isInstalled) console.warn(`SKIPPED: ${shell} is not installed`);

  test.skipIf(!isInstalled).each([
    ["vx acc", ["accounts"]],
    ["vx accounts cre", ["create", "credit"]],
    ["vx accounts credit acct_1 --rea", ["--reason"]],
    ["vx cells split a --la", ["--lanes"]],
    ["vx --url https://ops.example:8081 keys se", ["search", "set-limit"]],
    ["vx completion b", ["bash"]],
    ["vx migrate --s", ["--status"]],
    ["vx nonesuch --rea", []],
  ])("%s offers %j", (line, expected) => {
    expect([...complete(line)].sort()).toEqual(expected);
  });

  test.skipIf(!isInstalled)("every word of vx is offered, and no command after an option with a value", () => {
    const offered = complete("vx ");
    for (const name of ["serve", "usage", "copy-database", "log", "completion"]) expect(offered).toContain(name);
    expect(complete("vx accounts list --limit ")).not.toContain("--json");
  });
});

test("another shell is wrong usage", async () => {
  const { code, stderr } = await vx(["completion", "tcsh"]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^vx: .*tcsh.*bash, zsh, fish/)]);
});
