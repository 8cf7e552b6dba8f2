import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";
import { FAULTS } from "./faults/faults.ts";
import { plantInDatabase, withBug } from "./planted/plant.ts";
import { VARIANTS } from "./planted/variants.ts";

// `npm run torture:planted` checks that each bug is found, in minutes; this test checks that each can be
// planted.

const database = started(() => createTestDatabase());

test.each(VARIANTS.filter(({ code }) => code))("the code of the bug can be planted: $name", ({ code }) => {
  if (!code) return;
  const text = readFileSync(new URL(`../../${code.file}`, import.meta.url), "utf8");
  expect(withBug(text, code, code.file)).not.toBe(text);
});

test.each(VARIANTS)("there is the fault under which a bug must be found: $name", ({ under }) => {
  expect(FAULTS.map(({ name }) => name)).toContain(under);
});

test("the SQL of the bugs can be planted", async () => {
  for (const { name } of VARIANTS) await plantInDatabase(database.owner, name);
  expect(VARIANTS.filter(({ sql }) => sql).length).toBeGreaterThan(0);
});
