import type postgres from "postgres";
import type { Sql } from "../driver/connect.ts";

/**
 * Runs statements of a transaction that continues if one of them fails. Without this, the driver does not commit a transaction in
 * which a statement has failed, even if the error was caught and a savepoint was restored.
 */
export async function inSavepoint(transaction: Sql, run: (statements: Sql) => Promise<unknown>): Promise<void> {
  const { savepoint } = transaction as unknown as postgres.TransactionSql;
  // The driver never releases its own savepoint. Releasing an earlier one ends it too.
  await transaction`SAVEPOINT own`;
  try {
    await savepoint((statements) => run(statements as unknown as Sql));
  } finally {
    await transaction`RELEASE SAVEPOINT own`;
  }
}
