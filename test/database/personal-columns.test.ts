import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { personalTable, textColumns } from "../../tools/sql/personal-columns.ts";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";

const database = started(() => createTestDatabase());

test("each column with texts says whether it is personal, and docs/privacy.md lists those that are", async () => {
  const columns = await textColumns(database.owner);
  expect(columns.filter(({ mark }) => !/^(not personal|personal: (erased|kept)\b.*)$/.test(mark ?? ""))).toEqual([]);
  expect(readFileSync("docs/privacy.md", "utf8")).toContain(`\n${personalTable(columns)}\n`);
});
