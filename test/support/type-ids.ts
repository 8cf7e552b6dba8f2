import { createIds } from "../../src/domain/ids.ts";

/** Ids with the time of this machine, which is also that of the databases of tests. */
export const typeIds = createIds(Date.now);
