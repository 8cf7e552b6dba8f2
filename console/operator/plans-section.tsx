import { useState } from "preact/hooks";
import type { Plan } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { numberText } from "../shared/money.tsx";
import { EmptyState } from "../shared/states.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { ActionButton } from "./action-button.tsx";
import { planHref } from "./links.ts";
import { useApi } from "./operator-session.ts";
import { PlanDialog } from "./plan-dialog.tsx";

/** All plans. A plan can be changed, but not removed. */
export function PlansSection() {
  const api = useApi();
  const toast = useToast();
  const [edited, setEdited] = useState<Plan | "new">();
  const pages = usePages(
    async (_, signal) => ({
      rows: (await api.listPlans({ counts: true }, { signal })).plans,
      nextPageToken: "",
    }),
    "",
  );
  const saved = (name: string) => {
    toast(`The plan “${name}” is saved.`);
    pages.reload();
  };
  return (
    <>
      <PageHeader title="Plans">
        <ActionButton method="putPlan" tone="primary" onClick={() => setEdited("new")}>
          Create plan
        </ActionButton>
      </PageHeader>
      <PagedTable
        caption="Plans"
        columns={columnsOf(setEdited)}
        keyOf={({ name }) => name}
        pages={pages}
        empty={<EmptyState title="No plans" />}
      />
      <p class="muted small">
        A plan’s page has its limits of cost, tokens and generations. The limits apply to each key. New limits apply from the next
        call.
      </p>
      {edited && (
        <PlanDialog
          plan={edited === "new" ? undefined : edited}
          names={pages.data?.rows.map(({ name }) => name) ?? []}
          onSaved={saved}
          onClose={() => setEdited(undefined)}
        />
      )}
    </>
  );
}

function columnsOf(onEdit: (plan: Plan) => void): readonly Column<Plan>[] {
  return [
    { header: "Plan", isRowHeader: true, cell: ({ name }) => <a href={planHref(name)}>{name}</a> },
    { header: "Accounts", isNumber: true, cell: ({ accounts }) => numberText(accounts) },
    { header: "Active keys", isNumber: true, cell: ({ activeKeys }) => numberText(activeKeys) },
    { header: "Requests per minute", isNumber: true, cell: ({ rpm }) => numberText(rpm) },
    {
      header: "Keys per account",
      isNumber: true,
      cell: ({ maxActiveKeys }) => numberText(maxActiveKeys),
    },
    {
      header: "Keys created per hour",
      isNumber: true,
      cell: ({ maxKeysCreatedPerHour }) => numberText(maxKeysCreatedPerHour),
    },
    {
      header: "Actions",
      isAction: true,
      cell: (plan) => (
        <ActionButton method="putPlan" label={`Edit ${plan.name}`} onClick={() => onEdit(plan)}>
          Edit
        </ActionButton>
      ),
    },
  ];
}
