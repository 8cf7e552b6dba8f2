import { useState } from "preact/hooks";
import type { Invitation, Member } from "../../gen/vx/account/v1/account_pb.js";
import { ConfirmDialog } from "../shared/confirm-dialog.tsx";
import { Detail, Details } from "../shared/details.tsx";
import { FormDialog } from "../shared/form-dialog.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { InviteDialog } from "../shared/invite-dialog.tsx";
import { InvitationTable, MemberTable, memberName } from "../shared/member-tables.tsx";
import { MEMBER_ROLES, RoleField } from "../shared/role-field.tsx";
import { ErrorState, Skeleton } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useToast } from "../shared/toast.tsx";
import { useQuery } from "../shared/use-query.ts";
import { Action } from "./action.tsx";
import { PlainForm } from "./key-page.tsx";
import type { Viewer } from "./viewer.ts";

type Open =
  | { readonly action: "invite" | "rename" | "leave" }
  | { readonly action: "role" | "remove"; readonly member: Member }
  | { readonly action: "delete"; readonly invitation: Invitation };

/** The people who work with the account. */
export function MembersSection({ viewer }: { readonly viewer: Viewer }) {
  const { pageService, membership } = viewer;
  const [open, setOpen] = useState<Open>();
  const canInvite = viewer.refusalOf("listInvitations") === undefined;
  const query = useQuery(
    async (signal) => {
      const [{ members }, { invitations }] = await Promise.all([
        pageService.listMembers({}, { signal }),
        canInvite ? pageService.listInvitations({}, { signal }) : { invitations: [] },
      ]);
      return { members, invitations };
    },
    [viewer.id],
  );
  const { data, problem, reload } = query;
  const ownId = membership?.person.personId ?? "";
  return (
    <>
      <PageHeader title="Members">
        <Action viewer={viewer} method="renameAccount" onClick={() => setOpen({ action: "rename" })}>
          Rename account
        </Action>
        {ownId !== "" && (
          <Action viewer={viewer} method="leaveAccount" onClick={() => setOpen({ action: "leave" })}>
            Leave
          </Action>
        )}
        <Action viewer={viewer} method="createInvitation" tone="primary" onClick={() => setOpen({ action: "invite" })}>
          Invite
        </Action>
      </PageHeader>
      {problem && <ErrorState problem={problem} onRetry={reload} />}
      {data === undefined && !problem && <Skeleton width="100%" height="8rem" />}
      {data && (
        <>
          <MemberTable
            members={data.members}
            ownId={ownId}
            actionsOf={(member) => (
              <div class="row-actions">
                <Action
                  viewer={viewer}
                  method="setMemberRole"
                  label={`Change role of ${memberName(member)}`}
                  onClick={() => setOpen({ action: "role", member })}
                >
                  Change role
                </Action>
                {member.personId !== ownId && (
                  <Action
                    viewer={viewer}
                    method="removeMember"
                    label={`Remove ${memberName(member)}`}
                    onClick={() => setOpen({ action: "remove", member })}
                  >
                    Remove
                  </Action>
                )}
              </div>
            )}
          />
          <InvitationTable
            invitations={data.invitations}
            actionsOf={(invitation) => (
              <Action
                viewer={viewer}
                method="deleteInvitation"
                label={`Delete the invitation of ${invitation.email || invitation.id}`}
                onClick={() => setOpen({ action: "delete", invitation })}
              >
                Delete
              </Action>
            )}
          />
          <section class="card" aria-labelledby="roles">
            <h2 id="roles">Roles</h2>
            <Details>
              {Object.entries(MEMBER_ROLES).map(([role, text]) => (
                <Detail key={role} name={role}>
                  {text}
                </Detail>
              ))}
            </Details>
          </section>
        </>
      )}
      {open && <MemberDialog viewer={viewer} open={open} onDone={reload} onClose={() => setOpen(undefined)} />}
    </>
  );
}

type MemberDialogProps = {
  readonly viewer: Viewer;
  readonly open: Open;
  readonly onDone: () => void;
  readonly onClose: () => void;
};

function MemberDialog({ viewer, open, onDone, onClose }: MemberDialogProps) {
  const { pageService } = viewer;
  const toast = useToast();
  const done = (text: string) => {
    toast(text);
    onDone();
  };
  switch (open.action) {
    case "invite":
      return (
        <InviteDialog
          title="Invite a member"
          hasRole
          create={async (invitation) => (await pageService.createInvitation(invitation)).url}
          onDone={onDone}
          onClose={onClose}
          Form={PlainForm}
        />
      );
    case "rename":
      return <RenameDialog viewer={viewer} onClose={onClose} />;
    case "role":
      return (
        <RoleDialog
          member={open.member}
          save={async (role) => {
            await pageService.setMemberRole({ personId: open.member.personId, role });
            done("The role is changed.");
          }}
          onClose={onClose}
        />
      );
    case "remove":
      return (
        <ConfirmDialog
          title={`Remove ${memberName(open.member)}?`}
          action="Remove member"
          tone="danger"
          onConfirm={async () => {
            await pageService.removeMember({ personId: open.member.personId });
            done("The member is removed.");
          }}
          onClose={onClose}
        >
          <p>
            The person can no longer open this account. The keys of the account stay valid: rotate those that the person knows.
          </p>
        </ConfirmDialog>
      );
    case "leave":
      return (
        <ConfirmDialog
          title="Leave this account?"
          action="Leave account"
          tone="danger"
          onConfirm={async () => {
            await pageService.leaveAccount({});
            location.reload();
          }}
          onClose={onClose}
        >
          <p>To return, you need an invitation of an owner.</p>
        </ConfirmDialog>
      );
    case "delete":
      return (
        <ConfirmDialog
          title="Delete the invitation?"
          action="Delete invitation"
          tone="danger"
          onConfirm={async () => {
            await pageService.deleteInvitation({ invitationId: open.invitation.id });
            done("The invitation is deleted.");
          }}
          onClose={onClose}
        >
          <p>Its link no longer works.</p>
        </ConfirmDialog>
      );
  }
}

type RoleDialogProps = {
  readonly member: Member;
  readonly save: (role: string) => Promise<void>;
  readonly onClose: () => void;
};

function RoleDialog({ member, save, onClose }: RoleDialogProps) {
  const [role, setRole] = useState(member.role);
  return (
    <FormDialog title={`Role of ${memberName(member)}`} action="Save" errors={{}} onSubmit={() => save(role)} onClose={onClose}>
      {() => <RoleField value={role} onChange={setRole} />}
    </FormDialog>
  );
}

function RenameDialog({ viewer, onClose }: { readonly viewer: Viewer; readonly onClose: () => void }) {
  const [name, setName] = useState(viewer.account?.name ?? "");
  return (
    <FormDialog
      title="Rename the account"
      action="Rename"
      errors={{ name: name.trim() === "" ? "Enter a name." : undefined }}
      onSubmit={async () => {
        await viewer.pageService.renameAccount({ name: name.trim() });
        // The name is in the frame of the page.
        location.reload();
      }}
      onClose={onClose}
    >
      {(errors) => <TextField label="Name" error={errors.name} value={name} maxLength={100} onChange={setName} />}
    </FormDialog>
  );
}
