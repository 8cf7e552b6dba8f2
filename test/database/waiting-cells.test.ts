import { afterEach, expect, test, vi } from "vitest";
import type { CellToMigrate } from "../../src/database/cells/migrate-cell.ts";
import { WaitingCells } from "../../src/database/cells/waiting-cells.ts";

afterEach(() => vi.restoreAllMocks());

test("a cell that cannot be reached is used once a lane has had no owner for five seconds without a break", () => {
  const now = vi.spyOn(performance, "now");
  const used: string[] = [];
  const cell = { name: "b" } as CellToMigrate;
  const waiting = new WaitingCells([cell], [], "vx_app", ({ name }) => used.push(name));
  const ownersAt = (ms: number, unowned: number) => {
    now.mockReturnValue(ms);
    waiting.onOwners(unowned);
    return used.length;
  };
  expect(ownersAt(0, 1)).toBe(0);
  expect(ownersAt(4_000, 0)).toBe(0);
  expect(ownersAt(5_000, 1)).toBe(0);
  expect(ownersAt(9_999, 1)).toBe(0);
  expect(ownersAt(10_001, 1)).toBe(1);
  expect([used, waiting.waiting]).toEqual([["b"], []]);
});
