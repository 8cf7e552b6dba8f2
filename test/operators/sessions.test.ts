import { expect, test } from "vitest";
import { fingerprintOf } from "../../src/domain/credentials.ts";
import { createOperator, findSession, signInOperator } from "../../src/operators/store.ts";
import { TEST_ACTION, TEST_CALLER } from "../support/action.ts";
import { untilWaiting } from "../support/database.ts";
import { useStore } from "../support/store.ts";

const store = useStore();

/** An operator, and the identity with the same address. */
async function create(name: string) {
  const operator = { id: `op_${name}`, name, role: "viewer", email: `${name}@example.com` } as const;
  await createOperator(store.database, TEST_ACTION, operator, fingerprintOf(`token of ${name}`));
  return { operator, identity: { issuer: "https://issuer", subject: name, verifiedEmail: operator.email } };
}

test("a revocation and the use of a session at the same time do not deadlock", async () => {
  const { database, owner } = store;
  const { operator, identity } = await create("ada");
  const session = fingerprintOf("session");
  expect(await signInOperator(database, identity, session, "")).toMatchObject({ id: operator.id });
  // A use is recorded once a minute.
  await owner`UPDATE vx.operator_sessions SET used_at = used_at - interval '2 minutes'`;

  const { found } = await owner.begin(async (transaction) => {
    await transaction`LOCK TABLE vx.operators IN SHARE ROW EXCLUSIVE MODE`;
    const found = findSession(database, session, true);
    // It is awaited only after the transaction.
    found.catch(() => undefined);
    await untilWaiting(store, 1, "find_session");
    await transaction`SELECT vx.revoke_operator(${TEST_CALLER}, ${operator.id})`;
    return { found };
  });

  expect(await found).toBeUndefined();
});

test("two first sign-ins of an identity at the same time both succeed", async () => {
  const { database, owner } = store;
  const { operator, identity } = await create("bob");

  const { second } = await owner.begin(async (transaction) => {
    await transaction`
      SELECT FROM vx.sign_in_operator(${identity.issuer}, ${identity.subject}, ${operator.email},
        ${Buffer.from(fingerprintOf("first"), "hex")}, '')`;
    const second = signInOperator(database, identity, fingerprintOf("second"), "");
    second.catch(() => undefined);
    await untilWaiting(store, 1, "sign_in_operator");
    return { second };
  });

  expect(await second).toMatchObject({ id: operator.id });
});

test("the subject of another issuer is another identity", async () => {
  const { database, owner } = store;
  const { operator, identity } = await create("cyd");
  expect(await signInOperator(database, identity, fingerprintOf("own"), "")).toMatchObject({ id: operator.id });
  for (const verifiedEmail of ["", "nobody@example.com", operator.email]) {
    const other = { ...identity, issuer: "https://other", verifiedEmail };
    expect(await signInOperator(database, other, fingerprintOf(`other ${verifiedEmail}`), "")).toBeUndefined();
  }
  expect(await owner`SELECT FROM vx.operator_sessions WHERE operator_id = ${operator.id}`).toHaveLength(1);
});
