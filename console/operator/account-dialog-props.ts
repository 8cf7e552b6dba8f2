import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";

/** The properties of each dialog of an account. */
export type AccountDialogProps = {
  readonly account: Account;
  /** Gets a message such as “The account is on the plan “pro”.” */
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
};
