import { getOption } from "@bufbuild/protobuf";
import { AccountService as PageService } from "../../gen/vx/account/v1/account_pb.js";
import { policy } from "../../gen/vx/options/v1/options_pb.js";
import { AccountService } from "../../gen/vx/v1/account_pb.js";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { TopUpService } from "../../gen/vx/v1/top_up_pb.js";
import { WebhookService } from "../../gen/vx/v1/webhook_pb.js";

/** The methods of the services with which members change something. */
export const MEMBER_METHODS = {
  ...PageService.method,
  ...AccountService.method,
  ...KeyService.method,
  ...TopUpService.method,
  ...WebhookService.method,
};

/** The names of the methods whose calls by members are in the activity of the account. */
export const LOGGED_METHODS = Object.values(MEMBER_METHODS)
  .filter((method) => getOption(method, policy).member?.logged)
  .map(({ name }) => name);
