import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseCsv } from "../support/csv.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { Books } from "./books.ts";

const isMissing = spawnSync("python3", ["--version"]).status !== 0;
if (isMissing) console.warn("SKIPPED: the books are not checked: python3 is missing");

const folder = createTemporaryFolder("accountant");
beforeAll(async () => {
  if (isMissing) return;
  const books = await Books.start();
  try {
    await books.write();
    await books.export(folder.path);
  } finally {
    await books.stop();
  }
}, 120_000);
afterAll(() => folder.remove());

/** Runs the accountant's program, which shares no code with the product. */
function audit(): { status: number | null; output: string } {
  const program = join(import.meta.dirname, "accountant.py");
  const { status, stdout, stderr } = spawnSync("python3", [program, folder.path], { encoding: "utf8" });
  return { status, output: stdout + stderr };
}

/** The name of the first file that begins like this. */
const fileOf = (start: string) => readdirSync(folder.path).find((name) => name.startsWith(start)) ?? "";

/** Adds one to the last digit of the first number in a column. */
function withMistake(text: string, column: string): string {
  const { header, rows } = parseCsv(text);
  const row = rows.find((one) => /^-?[\d.]*[1-9]$/.test(one[column] ?? "")) as Record<string, string>;
  row[column] = (row[column] as string).replace(/\d$/, (digit) => String((Number(digit) + 1) % 10));
  const lines = [header, ...rows.map((one) => header.map((name) => one[name] ?? ""))];
  return lines.map((cells) => `${cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",")}\r\n`).join("");
}

describe.skipIf(isMissing)("the exported books", () => {
  test("are right to the micro", () => {
    const { status, output } = audit();
    console.log(output.trim());
    expect(output).toMatch(/, 0 differ\n$/);
    expect(status).toBe(0);
  });

  test.each([
    ["ledger-", "amount_micros"],
    ["ledger-", "balance_after_micros"],
    ["ledger-", "output_tokens"],
    ["statement-", "amount_micros"],
    ["usage.csv", "cost_micros"],
    ["usage.csv", "upstream_cost_micros"],
    ["focus-1.2.csv", "BilledCost"],
    ["focus-1.3.csv", "EffectiveCost"],
    ["focus-1.3.csv", "x_UpstreamCost"],
  ])("with one wrong number in %s, column %s, are refused", (start, column) => {
    const path = join(folder.path, fileOf(start));
    const text = readFileSync(path, "utf8");
    const wrong = withMistake(text, column);
    expect(wrong).not.toBe(text);
    writeFileSync(path, wrong);
    const { status, output } = audit();
    writeFileSync(path, text);
    expect(output).toMatch(/, [1-9]\d* differ\n$/);
    expect(status).toBe(1);
  });
});
