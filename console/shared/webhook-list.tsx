import { useState } from "preact/hooks";
import type { Webhook } from "../../gen/vx/v1/webhook_pb.js";
import { type Column, PagedTable } from "./data-table.tsx";
import { SecretDialog } from "./secret-dialog.tsx";
import { EmptyState, StateBadge } from "./states.tsx";
import { Time, ZoneNote } from "./time.tsx";
import { type Pages, usePages } from "./use-pages.ts";
import type { WebhookApi } from "./webhook-api.ts";
import { WebhookFormDialog } from "./webhook-form.tsx";

const TONES: Readonly<Record<string, "good" | "warn" | "bad">> = {
  enabled: "good",
  paused: "warn",
  disabled: "bad",
};

export function WebhookState({ state }: Pick<Webhook, "state">) {
  return <StateBadge tone={TONES[state] ?? "neutral"} state={state} />;
}

/** All webhooks of a list: an account has few. */
export function useWebhooks(api: WebhookApi): Pages<Webhook> {
  return usePages(async (_, signal) => ({ rows: await api.list(signal), nextPageToken: "" }), api.id);
}

type WebhookListProps = { readonly api: WebhookApi; readonly pages: Pages<Webhook> };

/** The webhooks, and a button to create one. */
export function WebhookList({ api, pages }: WebhookListProps) {
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string>();
  return (
    <>
      <div class="page-actions">
        <api.Action method="createWebhook" tone="primary" onClick={() => setCreating(true)}>
          Create webhook
        </api.Action>
      </div>
      <PagedTable
        caption="Webhooks"
        columns={columnsOf(api)}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No webhooks">A webhook sends events to a server of yours.</EmptyState>}
      />
      <ZoneNote />
      {isCreating && (
        <WebhookFormDialog
          api={api}
          title="Create webhook"
          action="Create webhook"
          save={async (properties, reason) => {
            setSecret((await api.create(properties, reason)).secret);
            pages.reload();
          }}
          onClose={() => setCreating(false)}
        />
      )}
      {secret !== undefined && <SecretDialog what="secret" secret={secret} onClose={() => setSecret(undefined)} />}
    </>
  );
}

function columnsOf(api: WebhookApi): readonly Column<Webhook>[] {
  return [
    {
      header: "Address",
      isRowHeader: true,
      cell: ({ id, url, description }) => (
        <>
          <a class="row-link wrap" href={api.href(id)}>
            {url}
          </a>
          <div class="muted small regular wrap">{description}</div>
        </>
      ),
    },
    { header: "State", cell: ({ state }) => <WebhookState state={state} /> },
    { header: "Events", isLong: true, cell: ({ types }) => <span class="wrap">{typesText(types)}</span> },
    { header: "Created", isNumber: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}

export function typesText(types: readonly string[]): string {
  return types.length === 0 ? "All types" : types.join(", ");
}
