import { AdminService, type CreateKeyRequest, type PutAutoTopUpRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import {
  adjustAccount,
  createAccount,
  creditAccount,
  getAccount,
  listAccounts,
  resumeAccount,
  setAccountPlan,
  suspendAccount,
  updateAccount,
} from "../accounts/admin.ts";
import { closeAccount } from "../accounts/close-account.ts";
import { ofAccount } from "../accounts/named-account.ts";
import { defineService } from "../api/define-service.ts";
import { audit, limitStreams, MAX_LONG_READS } from "../audit/run-audit.ts";
import { listAllEvents } from "../events/service.ts";
import { countFailuresOfAccount, listFailuresOfAccount } from "../failures/service.ts";
import { listCatalogModels } from "../generations/models.ts";
import { listKeys, reportLeak, searchKeys, setKeyLimit } from "../keys/admin.ts";
import { createKey, revokeKey, rotateKey, updateKey } from "../keys/changes.ts";
import { listLedgerEntries, listRecentEntries } from "../ledger/admin.ts";
import { refundEntry, rerate } from "../ledger/correct-charges.ts";
import { getAnyStatement } from "../ledger/statement-service.ts";
import { listLimitsOfOwner, removeLimit, setLimit } from "../limits/admin.ts";
import { createInvitation, createSignUpInvitation, listMembers, removeMember, viewCustomerPage } from "../members/admin.ts";
import { getAnyAutoTopUp, listAllTopUps, putAutoTopUp } from "../payments/service.ts";
import { listPlans, putPlan } from "../plans/admin.ts";
import { listAccountPrices, listPrices, setAccountPrices } from "../prices/admin.ts";
import { exportUsage } from "../usage/export.ts";
import { getAccountUsage } from "../usage/service.ts";
import { webhooksOfOperators } from "../webhooks/service.ts";
import { createOperator, listOperatorEvents, listOperators, revokeOperator, setOperatorRole } from "./admin.ts";

export const adminService = defineService(AdminService, {
  createAccount,
  getAccount,
  listAccounts,
  updateAccount: ofAccount(updateAccount),
  suspendAccount: ofAccount(suspendAccount),
  resumeAccount: ofAccount(resumeAccount),
  closeAccount: ofAccount(closeAccount),
  creditAccount: ofAccount(creditAccount),
  adjustAccount: ofAccount(adjustAccount),
  listPlans,
  listModels: listCatalogModels,
  listPrices,
  setAccountPrices: ofAccount(setAccountPrices),
  listAccountPrices,
  putPlan,
  setAccountPlan: ofAccount(setAccountPlan),
  createKey: ofAccount((deps, request: CreateKeyRequest, call) => createKey(deps, request.accountId, request, call)),
  listKeys,
  searchKeys,
  revokeKey,
  reportLeak,
  updateKey,
  rotateKey,
  setKeyLimit,
  listLimits: listLimitsOfOwner,
  setLimit,
  removeLimit,
  listLedgerEntries,
  listFailures: listFailuresOfAccount,
  countFailures: countFailuresOfAccount,
  listRecentEntries,
  getUsage: getAccountUsage,
  rerate: limitStreams(MAX_LONG_READS, rerate),
  refundEntry: ofAccount(refundEntry),
  getStatement: getAnyStatement,
  exportUsage: limitStreams(MAX_LONG_READS, exportUsage),
  createOperator,
  listOperators,
  revokeOperator,
  setOperatorRole,
  listEvents: listAllEvents,
  listTopUps: listAllTopUps,
  getAutoTopUp: getAnyAutoTopUp,
  putAutoTopUp: ofAccount((deps, request: PutAutoTopUpRequest, call) => putAutoTopUp(deps, request.accountId, request, call)),
  ...webhooksOfOperators,
  listMembers,
  createInvitation: ofAccount(createInvitation),
  createSignUpInvitation,
  removeMember: ofAccount(removeMember),
  viewCustomerPage: ofAccount(viewCustomerPage),
  listOperatorEvents,
  audit,
});
