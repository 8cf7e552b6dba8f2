import { type Action, callerOf } from "../../src/database/action.ts";

/** Who makes the changes of tests that call the store directly. */
export const TEST_ACTION: Action = {
  actor: { kind: "break_glass", id: "break-glass", name: "break-glass" },
  method: "Test",
  target: "",
  reason: "",
  details: {},
  requestId: "",
};

/** The same for a key of an account. */
export function actionOfKey(key: { readonly accountId: string; readonly keyId: string; readonly fingerprint: string }): Action {
  const { accountId, keyId: id, fingerprint } = key;
  return { ...TEST_ACTION, actor: { kind: "key", id, name: "", accountId, fingerprint } };
}

/** The same, as functions of the database take it. */
export const TEST_CALLER: string = callerOf(TEST_ACTION);
