import type { ComponentChildren } from "preact";
import type { Invitation, Member } from "../../gen/vx/account/v1/account_pb.js";
import { type Column, DataTable } from "./data-table.tsx";
import { Badge } from "./states.tsx";
import { Time } from "./time.tsx";

type MemberTableProps = {
  readonly members: readonly Member[];
  /** The id of the person who views the page, if it is a member. */
  readonly ownId?: string;
  readonly actionsOf: (member: Member) => ComponentChildren;
};

export function MemberTable({ members, ownId, actionsOf }: MemberTableProps) {
  const columns: readonly Column<Member>[] = [
    {
      header: "Member",
      isRowHeader: true,
      cell: ({ personId, email }) => (
        <>
          <span class="wrap">{memberName({ personId, email })}</span> {personId === ownId && <Badge tone="neutral">You</Badge>}
        </>
      ),
    },
    { header: "Role", cell: ({ role }) => role },
    { header: "Joined", cell: ({ joinedAt }) => <Time at={joinedAt} /> },
    { header: "Actions", isAction: true, cell: actionsOf },
  ];
  return (
    <div class="panel">
      <DataTable caption="Members" columns={columns} rows={members} keyOf={({ personId }) => personId} />
    </div>
  );
}

export function memberName({ personId, email }: Pick<Member, "personId" | "email">): string {
  return email || personId;
}

type InvitationTableProps = {
  readonly invitations: readonly Invitation[];
  readonly actionsOf?: (invitation: Invitation) => ComponentChildren;
};

/** Nothing without an open invitation. */
export function InvitationTable({ invitations, actionsOf }: InvitationTableProps) {
  if (invitations.length === 0) return null;
  const columns: Column<Invitation>[] = [
    {
      header: "For",
      isRowHeader: true,
      cell: ({ email }) => <span class="wrap">{email || "Anyone with the link"}</span>,
    },
    { header: "Role", cell: ({ role }) => role },
    { header: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
    { header: "Expires", cell: ({ expiresAt }) => <Time at={expiresAt} /> },
  ];
  if (actionsOf) columns.push({ header: "Actions", isAction: true, cell: actionsOf });
  return (
    <section class="usage" aria-labelledby="invitations">
      <h2 id="invitations">Open invitations</h2>
      <div class="panel">
        <DataTable caption="Open invitations" columns={columns} rows={invitations} keyOf={({ id }) => id} />
      </div>
    </section>
  );
}
