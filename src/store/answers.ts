import { laneOfId } from "../domain/lane.ts";
import type { Cells } from "./driver/cells.ts";

/** The stored response of the first call with an idempotency key. It may be long, so vx.bill does not return it. */
export async function findAnswer(
  database: Cells,
  accountId: string,
  idempotencyKey: string,
): Promise<string | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await database
    .at(lane)
    .call<{ answer: string }>("get_answer", lane, accountId, idempotencyKey);
  return row?.answer;
}
