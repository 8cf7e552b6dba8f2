import { useState } from "preact/hooks";
import type { Webhook } from "../../gen/vx/v1/webhook_pb.js";
import { Choices } from "./choices.tsx";
import { TextField } from "./text-field.tsx";
import type { WebhookApi, WebhookProperties } from "./webhook-api.ts";

type WebhookFormDialogProps = {
  readonly api: WebhookApi;
  /** The webhook that is changed. */
  readonly webhook?: Webhook;
  readonly title: string;
  readonly action: string;
  readonly save: (properties: WebhookProperties, reason: string) => Promise<void>;
  readonly onClose: () => void;
};

/** The address of a webhook, and which events it gets. */
export function WebhookFormDialog(props: WebhookFormDialogProps) {
  const { api, webhook, title, action, save, onClose } = props;
  const [form, setForm] = useState({
    url: webhook?.url ?? "",
    types: webhook?.types ?? [],
    description: webhook?.description ?? "",
  });
  const change = (part: Partial<typeof form>) => setForm((before) => ({ ...before, ...part }));
  const { url, types, description } = form;
  return (
    <api.Form
      title={title}
      action={action}
      errors={{ url: url.trim() === "" ? "Enter an address." : undefined }}
      onSubmit={(reason) => save({ url: url.trim(), types, description: description.trim() }, reason)}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <TextField
            label="Address"
            hint="Where events are sent: https://…"
            error={errors.url}
            value={url}
            maxLength={2048}
            onChange={(text) => change({ url: text })}
          />
          <Choices
            label="Events"
            hint="Without a selection: all, also types of later versions."
            // A type of the webhook may be unknown to this page.
            choices={[...new Set([...api.types, ...types])].map((id) => ({ id, text: "" }))}
            selected={types}
            onChange={(selected) => change({ types: [...selected] })}
          />
          <TextField label="Description" value={description} maxLength={200} onChange={(text) => change({ description: text })} />
        </>
      )}
    </api.Form>
  );
}
