import { useState } from "preact/hooks";
import { AdminService, type Operator } from "../../gen/vx/admin/v1/admin_pb.js";
import { ROLES, type Role } from "../../src/domain/operator.ts";
import { Copyable } from "../shared/copy-button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { Detail, Details } from "../shared/details.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { methodText } from "../shared/method-text.ts";
import { SecretDialog } from "../shared/secret-dialog.tsx";
import { Badge, EmptyState, StateBadge } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { hrefOf } from "../shared/use-route.ts";
import { ActionButton } from "./action-button.tsx";
import { CreateOperatorDialog, OperatorRoleDialog, RIGHTS } from "./operator-dialogs.tsx";
import { roleOf, useApi, useSession } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** All operators, revoked ones included. */
export function OperatorsSection() {
  const api = useApi();
  const own = useSession().operator.id;
  const toast = useToast();
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [changed, setChanged] = useState<Operator>();
  const [revoked, setRevoked] = useState<Operator>();
  const pages = usePages(async (pageToken, signal) => {
    const page = await api.listOperators({ pageToken, pageSize: 25 }, { signal });
    return { rows: page.operators, nextPageToken: page.nextPageToken };
  }, "");
  const created = (text: string) => {
    setCreating(false);
    setSecret(text);
    pages.reload();
  };
  const revoke = async ({ id, name }: Operator, reason: string) => {
    await api.revokeOperator({ operatorId: id, reason });
    toast(`The operator “${name}” is revoked.`);
    pages.reload();
  };
  const setRole = async ({ id, name }: Operator, role: Role, reason: string) => {
    await api.setOperatorRole({ operatorId: id, role, reason });
    setChanged(undefined);
    toast(`The operator “${name}” has the role “${role}”.`);
    pages.reload();
  };
  return (
    <>
      <PageHeader title="Operators">
        <ActionButton method="createOperator" tone="primary" onClick={() => setCreating(true)}>
          Create operator
        </ActionButton>
      </PageHeader>
      <PagedTable
        caption="Operators"
        columns={columnsOf(own, setChanged, setRevoked)}
        keyOf={({ id }) => id}
        pages={pages}
        empty={
          <EmptyState title="No operators yet">
            Until then, the holder of VX_ADMIN_TOKEN makes all changes, and the log cannot tell who it was.
          </EmptyState>
        }
      />
      <ZoneNote />
      <section class="card" aria-labelledby="roles">
        <h2 id="roles">Roles</h2>
        <Details>
          {Object.entries(RIGHTS).map(([role, text]) => (
            <Detail key={role} name={role}>
              {text}
              <div class="muted small">{actionsOf(role as Role).join(", ")}</div>
            </Detail>
          ))}
        </Details>
      </section>
      {isCreating && <CreateOperatorDialog onCreated={created} onClose={() => setCreating(false)} />}
      {secret !== undefined && <SecretDialog what="token" secret={secret} onClose={() => setSecret(undefined)} />}
      {changed && (
        <OperatorRoleDialog
          operator={changed}
          isOwn={changed.id === own}
          onSave={(role, reason) => setRole(changed, role, reason)}
          onClose={() => setChanged(undefined)}
        />
      )}
      {revoked && (
        <ReasonDialog
          title={`Revoke “${revoked.name}”?`}
          action="Revoke operator"
          tone="danger"
          onSubmit={(reason) => revoke(revoked, reason)}
          onClose={() => setRevoked(undefined)}
        >
          <p>The token and the sessions of the operator end at once. This cannot be undone.</p>
          {revoked.id === own && <p>You are this operator. Revoking it signs you out.</p>}
        </ReasonDialog>
      )}
    </>
  );
}

/** What a role may do that the roles before it may not; nothing for the first, which only reads. */
function actionsOf(role: Role): readonly string[] {
  if (role === ROLES[0]) return [];
  return Object.values(AdminService.method)
    .filter((method) => roleOf(method) === role)
    .map(({ name }) => methodText(name))
    .toSorted();
}

function columnsOf(
  own: string,
  onChangeRole: (operator: Operator) => void,
  onRevoke: (operator: Operator) => void,
): readonly Column<Operator>[] {
  return [
    {
      header: "Operator",
      isRowHeader: true,
      cell: ({ id, name, email }) => (
        <>
          {name} {id === own && <Badge tone="neutral">You</Badge>}
          {email !== "" && <div class="muted small regular">{email}</div>}
          <div>
            <Copyable text={id} what={`id of ${name}`} isMuted />
          </div>
        </>
      ),
    },
    { header: "Role", cell: ({ role }) => role },
    {
      header: "State",
      cell: ({ state }) => <StateBadge tone={state === "active" ? "good" : "neutral"} state={state} />,
    },
    { header: "Last used", cell: ({ lastUsedAt }) => <Time at={lastUsedAt} none="Never" /> },
    { header: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      header: "Actions",
      isAction: true,
      cell: (operator) => (
        <div class="row-actions">
          <a class="button button-plain" href={hrefOf("log", { actor: operator.id })} aria-label={`Log of ${operator.name}`}>
            Log
          </a>
          {operator.state === "active" && (
            <>
              <ActionButton
                method="setOperatorRole"
                label={`Change role of ${operator.name}`}
                onClick={() => onChangeRole(operator)}
              >
                Role
              </ActionButton>
              <ActionButton method="revokeOperator" label={`Revoke ${operator.name}`} onClick={() => onRevoke(operator)}>
                Revoke
              </ActionButton>
            </>
          )}
        </div>
      ),
    },
  ];
}
