import { expect, test } from "vitest";
import { audit } from "../../src/store/audit.ts";
import { charge, createPayer } from "../support/payer.ts";
import { createTestBilling, useStore } from "../support/store.ts";

const store = useStore();

test("the audit finds each difference between usage and ledger, for any size of its pieces", async () => {
  const [payer, other] = await Promise.all([
    createPayer(store.database, 1_000n),
    createPayer(store.database, 1_000n),
  ]);
  const billing = createTestBilling(store.database);
  for (let i = 0; i < 7; i++) {
    await charge(billing, payer, BigInt(i + 1), ["", "ada", "bob"][i % 3]);
    await charge(billing, other, 1n);
  }
  const { owner } = store;
  const findings = async (pieceRows: number) => {
    const report = await audit(store.database, new AbortController().signal, pieceRows);
    const ids = [payer.accountId, other.accountId];
    return report.findings
      .filter(({ account_id }) => ids.includes(account_id))
      .map(({ rule, detail }) => `${rule} ${detail}`);
  };
  const expectFindings = async (pattern: RegExp | undefined) => {
    for (const pieceRows of [1, 2, 3, 7, 8, 9, 1_000]) {
      const found = await findings(pieceRows);
      if (!pattern) expect(found, `pieces of ${pieceRows}`).toEqual([]);
      else expect(found.join("\n"), `pieces of ${pieceRows}`).toMatch(pattern);
    }
  };
  await expectFindings(undefined);
  const { accountId } = payer;
  await owner`UPDATE vx.usage_quarters SET output = output + 1 WHERE account_id = ${accountId} AND user_id = 'ada'`;
  await expectFindings(
    /^usage_equals_ledger .*, key key_\w+, model m: 2 requests, 8 units, 7 micros; in the ledger 2, 7, 7$/,
  );
  await owner`UPDATE vx.usage_quarters SET output = output - 1, input = input + 1, cached_input = cached_input - 1 WHERE account_id = ${accountId} AND user_id = 'ada'`;
  await expectFindings(/^usage_equals_ledger the sums differ from the ledger$/);
  await owner`UPDATE vx.usage_quarters SET input = input - 1, cached_input = cached_input + 1 WHERE account_id = ${accountId} AND user_id = 'ada'`;
  await expectFindings(undefined);
  await owner`UPDATE vx.usage_quarters SET quarter = quarter - 1 WHERE account_id = ${accountId} AND user_id = 'bob'`;
  await expectFindings(
    /usage_equals_ledger .* 0 requests.*in the ledger 2, 8, 8\n|usage_equals_ledger .*in the ledger 0, 0, 0/,
  );
  await owner`DELETE FROM vx.usage_quarters WHERE account_id = ${accountId}`;
  await expectFindings(/: 0 requests, .*in the ledger 3, 12, 12\n.*: 0 requests, .*in the ledger 4, 16, 16$/);
});
