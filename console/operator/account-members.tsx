import { useState } from "preact/hooks";
import type { Member } from "../../gen/vx/account/v1/account_pb.js";
import { InviteDialog } from "../shared/invite-dialog.tsx";
import { InvitationTable, MemberTable, memberName } from "../shared/member-tables.tsx";
import { EmptyState, ErrorState, Skeleton } from "../shared/states.tsx";
import { ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { AccountTabProps } from "./account-tab-props.ts";
import { ActionButton } from "./action-button.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** The people who work with an account. */
export function AccountMembers({ account }: AccountTabProps) {
  const api = useApi();
  const toast = useToast();
  const [isInviting, setInviting] = useState(false);
  const [removed, setRemoved] = useState<Member>();
  const accountId = account.id;
  const { data, problem, reload } = useQuery((signal) => api.listMembers({ accountId }, { signal }), [accountId]);
  return (
    <>
      <div class="page-actions">
        <ActionButton method="createInvitation" tone="primary" onClick={() => setInviting(true)}>
          Invite
        </ActionButton>
      </div>
      {problem && <ErrorState problem={problem} onRetry={reload} />}
      {data === undefined && !problem && <Skeleton width="100%" height="8rem" />}
      {data?.members.length === 0 && (
        <div class="panel">
          <EmptyState title="No members">
            Members sign in to the customer page. Invite the first owner; the account can also be used with its keys alone.
          </EmptyState>
        </div>
      )}
      {data && data.members.length > 0 && (
        <MemberTable
          members={data.members}
          actionsOf={(member) => (
            <ActionButton method="removeMember" label={`Remove ${memberName(member)}`} onClick={() => setRemoved(member)}>
              Remove
            </ActionButton>
          )}
        />
      )}
      {data && <InvitationTable invitations={data.invitations} />}
      <ZoneNote />
      {isInviting && (
        <InviteDialog
          title="Invite a member"
          hasRole
          create={async (invitation, reason) => (await api.createInvitation({ accountId, ...invitation, reason })).url}
          onDone={reload}
          onClose={() => setInviting(false)}
          Form={ReasonDialog}
        />
      )}
      {removed && (
        <ReasonDialog
          title={`Remove ${memberName(removed)}?`}
          action="Remove member"
          tone="danger"
          onSubmit={async (reason) => {
            await api.removeMember({ accountId, personId: removed.personId, reason });
            toast("The member is removed.");
            reload();
          }}
          onClose={() => setRemoved(undefined)}
        >
          <p>The person can no longer open the account. The keys of the account stay valid.</p>
        </ReasonDialog>
      )}
    </>
  );
}
