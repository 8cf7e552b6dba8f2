import { useState } from "preact/hooks";
import type { Webhook } from "../../gen/vx/v1/webhook_pb.js";
import { DeliveryList, OutcomeDetails } from "./delivery-list.tsx";
import { Detail, Details, IdDetail } from "./details.tsx";
import { Dialog } from "./dialog.tsx";
import { previousText } from "./key-state.tsx";
import { OverlapField } from "./overlap-field.tsx";
import { SecretDialog } from "./secret-dialog.tsx";
import { EmptyState, ErrorState, Skeleton } from "./states.tsx";
import { Time } from "./time.tsx";
import { useToast } from "./toast.tsx";
import { useQuery } from "./use-query.ts";
import { navigate } from "./use-route.ts";
import type { NewSecret, WebhookApi } from "./webhook-api.ts";
import { WebhookFormDialog } from "./webhook-form.tsx";
import { typesText, useWebhooks, WebhookState } from "./webhook-list.tsx";

type WebhookPageProps = {
  readonly api: WebhookApi;
  readonly id: string;
  /** The state of the deliveries that are shown; empty for all. */
  readonly state: string;
  /** The address of the list of webhooks. */
  readonly listHref: string;
};

/** One webhook: what it gets, what can be changed, and its deliveries. */
export function WebhookPage({ api, id, state, listHref }: WebhookPageProps) {
  const pages = useWebhooks(api);
  const webhook = pages.data?.rows.find((one) => one.id === id);
  return (
    <>
      <nav class="breadcrumb small" aria-label="Breadcrumb">
        <a href={listHref}>Webhooks</a>
        <span aria-hidden="true">/</span>
        <code>{id}</code>
      </nav>
      <div class="page-header">
        <h1 class="title-with-badge">
          {webhook ? <span class="wrap">{webhook.url}</span> : <Skeleton width="14rem" />}
          {webhook && <WebhookState state={webhook.state} />}
        </h1>
      </div>
      {pages.problem && <ErrorState problem={pages.problem} onRetry={pages.reload} />}
      {pages.data && !webhook && <EmptyState title="There is no such webhook" />}
      {webhook && (
        <>
          <WebhookActions api={api} webhook={webhook} onChanged={pages.reload} listHref={listHref} />
          <WebhookDetails webhook={webhook} />
          <DeliveryList api={api} webhook={webhook} state={state} />
        </>
      )}
    </>
  );
}

const DISABLED_REASONS: Readonly<Record<string, string>> = {
  gone: "Its server answered 410: it does not want more events.",
  failing: "It accepted nothing for five days.",
};

function WebhookDetails({ webhook }: { readonly webhook: Webhook }) {
  return (
    <section class="card" aria-label="Details">
      <Details>
        <IdDetail name="Webhook id" id={webhook.id} />
        <Detail name="Description">{webhook.description}</Detail>
        <Detail name="Events">{typesText(webhook.types)}</Detail>
        <Detail name="Created">
          <Time at={webhook.createdAt} />
        </Detail>
        <Detail name="Disabled">{DISABLED_REASONS[webhook.disabledReason]}</Detail>
        <Detail name="Secret">{previousText(webhook)}</Detail>
      </Details>
    </section>
  );
}

type WebhookActionsProps = {
  readonly api: WebhookApi;
  readonly webhook: Webhook;
  readonly onChanged: () => void;
  readonly listHref: string;
};

type OpenDialog = "test" | "state" | "edit" | "rotate" | "delete";

function WebhookActions(props: WebhookActionsProps) {
  const { api, webhook, onChanged } = props;
  const [open, setOpen] = useState<OpenDialog>();
  const [rotated, setRotated] = useState<NewSecret>();
  const close = () => setOpen(undefined);
  const actions = [
    ["test", "testWebhook", "Test"],
    ["state", "updateWebhook", webhook.state === "enabled" ? "Pause" : "Resume"],
    ["edit", "updateWebhook", "Edit"],
    ["rotate", "rotateWebhook", "Rotate secret"],
    ["delete", "deleteWebhook", "Delete"],
  ] as const;
  return (
    <div class="page-actions">
      {actions.map(([dialog, method, text]) => (
        <api.Action key={dialog} method={method} onClick={() => setOpen(dialog)}>
          {text}
        </api.Action>
      ))}
      {open === "test" && <TestDialog {...props} onClose={close} />}
      {open === "state" && <StateDialog {...props} onClose={close} />}
      {open === "edit" && <EditDialog {...props} onClose={close} />}
      {open === "delete" && <DeleteDialog {...props} onClose={close} />}
      {open === "rotate" && (
        <RotateDialog
          {...props}
          onRotated={(secret) => {
            setRotated(secret);
            onChanged();
          }}
          onClose={close}
        />
      )}
      {rotated && (
        <SecretDialog
          what="secret"
          secret={rotated.secret}
          note={rotated.webhook && previousText(rotated.webhook)}
          onClose={() => setRotated(undefined)}
        />
      )}
    </div>
  );
}

type DialogProps = WebhookActionsProps & { readonly onClose: () => void };

/** Sends the event when it opens. */
function TestDialog({ api, webhook, onClose }: DialogProps) {
  const { data: outcome, problem } = useQuery((signal) => api.test(webhook.id, signal), []);
  return (
    <Dialog title="Test" onClose={onClose}>
      <div class="dialog-body">
        {problem && <ErrorState problem={problem} />}
        {!outcome && !problem && <p role="status">Waiting for the answer of the server …</p>}
      </div>
      {outcome && (
        <Details isInDialog>
          <OutcomeDetails outcome={outcome} />
        </Details>
      )}
    </Dialog>
  );
}

function StateDialog({ api, webhook, onChanged, onClose }: DialogProps) {
  const toast = useToast();
  const isEnabled = webhook.state === "enabled";
  const save = async (reason: string) => {
    const state = isEnabled ? "paused" : "enabled";
    await api.update({ webhookId: webhook.id, state, updateMask: { paths: ["state"] } }, reason);
    toast(isEnabled ? "The webhook is paused." : "The webhook is enabled.");
    onChanged();
  };
  return (
    <api.Form
      title={isEnabled ? "Pause the webhook?" : "Resume the webhook?"}
      action={isEnabled ? "Pause" : "Resume"}
      errors={{}}
      onSubmit={save}
      onClose={onClose}
    >
      {() => <p>{stateText(webhook)}</p>}
    </api.Form>
  );
}

function stateText({ state }: Webhook): string {
  switch (state) {
    case "enabled":
      return "Its events wait until it is resumed.";
    case "paused":
      return "The events that waited are sent now.";
    default:
      return "It gets new events. Those since it was disabled can be sent again.";
  }
}

function EditDialog({ api, webhook, onChanged, onClose }: DialogProps) {
  const toast = useToast();
  return (
    <WebhookFormDialog
      api={api}
      webhook={webhook}
      title="Edit webhook"
      action="Save"
      save={async (properties, reason) => {
        const paths = ["url", "types", "description"];
        await api.update({ ...properties, webhookId: webhook.id, updateMask: { paths } }, reason);
        toast("The webhook is changed.");
        onChanged();
      }}
      onClose={onClose}
    />
  );
}

type RotateDialogProps = DialogProps & { readonly onRotated: (secret: NewSecret) => void };

function RotateDialog({ api, webhook, onRotated, onClose }: RotateDialogProps) {
  const [overlap, setOverlap] = useState("86400");
  const request = { webhookId: webhook.id, overlapSeconds: Number(overlap) };
  return (
    <api.Form
      title="Rotate the secret"
      action="Rotate secret"
      errors={{}}
      onSubmit={async (reason) => onRotated(await api.rotate(request, reason))}
      onClose={onClose}
    >
      {() => (
        <>
          <p>Meanwhile, deliveries have the signatures of both secrets.</p>
          <OverlapField value={overlap} onChange={setOverlap} hasPrevious={webhook.previousExpiresAt !== undefined} />
        </>
      )}
    </api.Form>
  );
}

function DeleteDialog({ api, webhook, listHref, onClose }: DialogProps) {
  const toast = useToast();
  const remove = async (reason: string) => {
    await api.remove(webhook.id, reason);
    toast("The webhook is deleted.");
    navigate(listHref);
  };
  return (
    <api.Form title="Delete the webhook?" action="Delete webhook" tone="danger" errors={{}} onSubmit={remove} onClose={onClose}>
      {() => <p class="wrap">{webhook.url} gets no more events. This cannot be undone.</p>}
    </api.Form>
  );
}
