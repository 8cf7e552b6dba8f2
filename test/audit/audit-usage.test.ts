import { expect, test } from "vitest";
import { audit } from "../../src/audit/store.ts";
import { charge, createPayer } from "../support/payer.ts";
import { createTestBilling, useOwnStore } from "../support/store.ts";

const store = useOwnStore();

/** The other tests of the audit read all in one piece. */
const PIECES = [1, 8];

test("the audit reads the old sums of an account in pieces, and finds each difference in them", async () => {
  const [payer, other] = await Promise.all([createPayer(store.database, 1_000n), createPayer(store.database, 1_000n)]);
  const billing = createTestBilling(store.database);
  for (let i = 0; i < 13; i++) await charge(billing, payer, 1n, `user ${i}`);
  for (let i = 0; i < 3; i++) await charge(billing, other, 1n);
  const { owner } = store;
  const { accountId } = payer;
  const digestOf = (name: string) => owner`(SELECT user_id FROM vx.end_users WHERE account_id = ${accountId} AND name = ${name})`;
  // A part of the charges is a day old.
  await owner`UPDATE vx.ledger SET created_at = created_at - interval '1 day' WHERE account_id = ${accountId} AND seq < 13`;
  await owner`
    UPDATE vx.usage_quarters u SET quarter = u.quarter - 96 FROM vx.ledger l
    WHERE u.account_id = ${accountId} AND l.account_id = u.account_id AND l.user_id = u.user_id AND l.seq < 13`;
  const expectDifferences = async (count: number) => {
    for (const pieceRows of PIECES) {
      const { findings } = await audit(store.database, new AbortController().signal, pieceRows);
      const found = findings.filter(({ rule }) => rule === "usage_equals_ledger");
      expect(found, `pieces of ${pieceRows}`).toHaveLength(count);
    }
  };
  await expectDifferences(0);
  for (const user of ["user 0", "user 10", "user 12"]) {
    const change = (by: number) =>
      owner`UPDATE vx.usage_quarters SET requests = requests + ${by} WHERE account_id = ${accountId} AND user_id = ${digestOf(user)}`;
    await change(1);
    await expectDifferences(1);
    await change(-1);
  }
  await owner`DELETE FROM vx.usage_quarters WHERE account_id = ${accountId} AND user_id = ${digestOf("user 5")}`;
  await expectDifferences(1);
  await owner`DELETE FROM vx.usage_quarters WHERE account_id = ${accountId}`;
  await owner`DELETE FROM vx.ledger WHERE account_id = ${accountId}`;
});

test("the audit finds each difference between usage and ledger, for any size of its pieces", async () => {
  const [payer, other] = await Promise.all([createPayer(store.database, 1_000n), createPayer(store.database, 1_000n)]);
  const billing = createTestBilling(store.database);
  for (let i = 0; i < 7; i++) {
    await charge(billing, payer, BigInt(i + 1), ["", "ada", "bob"][i % 3]);
    await charge(billing, other, 1n);
  }
  const { owner } = store;
  const findings = async (pieceRows: number) => {
    const report = await audit(store.database, new AbortController().signal, pieceRows);
    const ids = [payer.accountId, other.accountId];
    return report.findings.filter(({ account_id }) => ids.includes(account_id)).map(({ rule, detail }) => `${rule} ${detail}`);
  };
  const expectFindings = async (pattern: RegExp | undefined) => {
    for (const pieceRows of PIECES) {
      const found = await findings(pieceRows);
      if (!pattern) expect(found, `pieces of ${pieceRows}`).toEqual([]);
      else expect(found.join("\n"), `pieces of ${pieceRows}`).toMatch(pattern);
    }
  };
  await expectFindings(undefined);
  const { accountId } = payer;
  const digestOf = (name: string) => owner`(SELECT user_id FROM vx.end_users WHERE account_id = ${accountId} AND name = ${name})`;
  await owner`UPDATE vx.usage_quarters SET output = output + 1 WHERE account_id = ${accountId} AND user_id = ${digestOf("ada")}`;
  await expectFindings(/^usage_equals_ledger .*, key key_\w+, model m: 2 requests, 8 units, 7 micros; in the ledger 2, 7, 7$/);
  await owner`UPDATE vx.usage_quarters SET output = output - 1, input = input + 1, cached_input = cached_input - 1 WHERE account_id = ${accountId} AND user_id = ${digestOf("ada")}`;
  await expectFindings(/^usage_equals_ledger the sums differ from the ledger$/);
  await owner`UPDATE vx.usage_quarters SET input = input - 1, cached_input = cached_input + 1 WHERE account_id = ${accountId} AND user_id = ${digestOf("ada")}`;
  await expectFindings(undefined);
  await owner`UPDATE vx.usage_quarters SET quarter = quarter - 1 WHERE account_id = ${accountId} AND user_id = ${digestOf("bob")}`;
  await expectFindings(/usage_equals_ledger .* 0 requests.*in the ledger 2, 8, 8\n|usage_equals_ledger .*in the ledger 0, 0, 0/);
  await owner`DELETE FROM vx.usage_quarters WHERE account_id = ${accountId}`;
  await expectFindings(/: 0 requests, .*in the ledger 3, 12, 12\n.*: 0 requests, .*in the ledger 4, 16, 16$/);
});
