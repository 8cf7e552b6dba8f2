import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { InvitationSchema, MemberSchema } from "../../gen/vx/account/v1/account_pb.js";
import type {
  CreateInvitationRequest,
  CreateSignUpInvitationRequest,
  ListMembersRequest,
  RemoveMemberRequest,
  ViewCustomerPageRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { accountToRead } from "../accounts/named-account.ts";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { viewOf } from "../api/view.ts";
import { fingerprintOf } from "../domain/credentials.ts";
import { laneOfId } from "../domain/lane.ts";
import type { MemberRole } from "../domain/member.ts";
import { makeLoggedChange, type WithReason } from "../operators/operator-action.ts";
import {
  createInvitation as createInvitationRow,
  createSignUpInvitation as createSignUpRow,
  type InvitationRow,
  listInvitations,
  listMembers as listMemberRows,
  type MemberRow,
  openCustomerPage,
  removeMember as removeMemberRow,
} from "./store.ts";

export async function listMembers(deps: Deps, { accountId }: ListMembersRequest, call: ApiCall) {
  const { id } = await accountToRead(deps, call, accountId);
  const [members, invitations] = await Promise.all([listMemberRows(deps.database, id), listInvitations(deps.database, id)]);
  return { members: members.map(viewMember), invitations: invitations.map(viewInvitation) };
}

/** The secret of the link is in its fragment, which browsers send to no server. */
export async function createInvitation(
  deps: Deps,
  request: Pick<CreateInvitationRequest, "accountId" | "role" | "email"> & WithReason,
  call: ApiCall,
) {
  const { accountId, email, reason } = request;
  const role = request.role as MemberRole;
  const secret = deps.generateLinkSecret();
  const token = { id: deps.ids.invitation(laneOfId(accountId)), fingerprint: fingerprintOf(secret) };
  const row = await makeLoggedChange(deps, call, { target: accountId, reason, details: { role } }, (action) =>
    createInvitationRow(deps.database, action, accountId, token, { role, email }),
  );
  return { invitation: viewInvitation(row), url: linkTo(deps, "invitation", `${token.id}.${secret}`) };
}

export async function createSignUpInvitation(deps: Deps, { email, reason }: CreateSignUpInvitationRequest, call: ApiCall) {
  const secret = deps.generateLinkSecret();
  const token = { id: deps.ids.signUpInvitation(), fingerprint: fingerprintOf(secret) };
  const row = await makeLoggedChange(deps, call, { reason }, (action) => createSignUpRow(deps.database, action, token, email));
  const url = linkTo(deps, "sign-up", `${token.id}.${secret}`);
  return { id: row.id, expiresAt: timestampFromDate(row.expires_at), url };
}

export async function removeMember(
  deps: Deps,
  { accountId, personId, reason }: Pick<RemoveMemberRequest, "accountId" | "personId"> & WithReason,
  call: ApiCall,
) {
  await makeLoggedChange(deps, call, { target: personId, reason }, (action) =>
    removeMemberRow(deps.database, action, accountId, personId),
  );
  return {};
}

export async function viewCustomerPage(deps: Deps, { accountId, reason }: ViewCustomerPageRequest, call: ApiCall) {
  const secret = deps.generateLinkSecret();
  await makeLoggedChange(deps, call, { target: accountId, reason }, (action) =>
    openCustomerPage(deps.database, action, accountId, deps.ids.pageSession(), fingerprintOf(secret)),
  );
  return { url: linkTo(deps, "view", secret) };
}

function linkTo({ accountPageUrl }: Deps, section: string, token: string): string {
  return `${accountPageUrl}#/${section}?token=${token}`;
}

export function viewMember(row: MemberRow): MessageInitShape<typeof MemberSchema> {
  return viewOf(MemberSchema, row, {});
}

export function viewInvitation(row: InvitationRow): MessageInitShape<typeof InvitationSchema> {
  return viewOf(InvitationSchema, row, {});
}
