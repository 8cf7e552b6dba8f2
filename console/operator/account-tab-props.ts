import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";

/** The properties of each tab of the page of an account. */
export type AccountTabProps = {
  readonly account: Account;
  readonly params: URLSearchParams;
};
