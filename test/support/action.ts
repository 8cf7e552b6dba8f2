import { actionJson, type OperatorAction } from "../../src/store/operator-log.ts";

/** Who makes the changes of tests that call the store directly. */
export const TEST_ACTION: OperatorAction = {
  actorId: "break-glass",
  actorName: "break-glass",
  method: "Test",
  target: "",
  reason: "",
  details: {},
  requestId: "",
};

/** The same, as functions of the database take it. */
export const TEST_ACTION_JSON: string = actionJson(TEST_ACTION);
