import type { Lane } from "../domain/lane.ts";
import type { CellToMigrate } from "../store/schema/migrate-cell.ts";
import { SplitError } from "../store/split/split-error.ts";
import { SplitSource } from "../store/split/split-source.ts";

/**
 * Undoes the unfinished split of a cell without its standby, which may be lost. Returns the lanes that the cell owns
 * again. The standby can never claim them afterwards, because the source does not confirm the split any more.
 */
export async function abortSplit({ name, address, schema }: CellToMigrate): Promise<readonly Lane[]> {
  const source = await SplitSource.open(address, schema);
  try {
    const split = await source.lastSplit();
    switch (split?.state) {
      case "begun":
        await source.setState(split.id, "begun", "returned");
        return split.lanes;
      case "released":
        await source.abort(split.id);
        return split.lanes;
      case "confirmed":
        throw new SplitError(
          `the source has confirmed the split, and the cell "${split.target}" may own the lanes; run the command of the split again to finish it`,
        );
      default:
        throw new SplitError(`the cell "${name}" has no unfinished split`);
    }
  } finally {
    await source.close();
  }
}
