import { laneOfId } from "../domain/lane.ts";
import type { Database } from "./driver/database.ts";

/** The stored response of the first call with an idempotency key. It may be long, so vx.bill does not return it. */
export async function findAnswer(
  database: Database,
  accountId: string,
  idempotencyKey: string,
): Promise<string | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await database.call<{ answer: string }>("get_answer", lane, accountId, idempotencyKey);
  return row?.answer;
}
