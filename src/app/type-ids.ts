import { createIds } from "../domain/ids.ts";

/** All ids of this process. */
export const typeIds = createIds(Date.now);
