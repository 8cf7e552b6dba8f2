import { useState } from "preact/hooks";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { Copyable } from "../shared/copy-button.tsx";
import type { Column } from "../shared/data-table.tsx";
import { rpmError } from "../shared/key-fields.tsx";
import { KeyState } from "../shared/key-state.tsx";
import { numberText } from "../shared/money.tsx";
import { TextField } from "../shared/text-field.tsx";
import { Time } from "../shared/time.tsx";
import { ActionButton } from "./action-button.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** The change of a key whose dialog is open. */
export type OpenKeyDialog = { readonly key: ApiKey; readonly action: "revoke" | "limit" };

export function keyColumnsOf(onOpen: (dialog: OpenKeyDialog) => void): readonly Column<ApiKey>[] {
  return [
    {
      header: "Key",
      isRowHeader: true,
      cell: ({ id, name, maskedKey }) => (
        <>
          {name}
          <div class="regular nowrap">
            <code class="muted">{maskedKey}</code>
          </div>
          <div>
            <Copyable text={id} what={`id of ${name}`} isMuted />
          </div>
        </>
      ),
    },
    { header: "State", cell: ({ state }) => <KeyState state={state} /> },
    { header: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
    {
      header: "Limit",
      cell: ({ rateLimitRpm, plan }) => (
        <>
          <span class="nowrap">{numberText(rateLimitRpm)}/min</span>
          <div class="muted small">{plan}</div>
        </>
      ),
    },
    { header: "Last used", cell: ({ lastUsedAt }) => <Time at={lastUsedAt} none="Never" /> },
    { header: "Expires", cell: ({ expiresAt }) => <Time at={expiresAt} none="Never" /> },
    {
      header: "Actions",
      isAction: true,
      cell: (key) =>
        key.state === "active" && (
          <div class="row-actions">
            <ActionButton
              method="setKeyLimit"
              label={`Limit ${key.name}`}
              onClick={() => onOpen({ key, action: "limit" })}
            >
              Limit
            </ActionButton>
            <ActionButton
              method="revokeKey"
              label={`Revoke ${key.name}`}
              onClick={() => onOpen({ key, action: "revoke" })}
            >
              Revoke
            </ActionButton>
          </div>
        ),
    },
  ];
}

type DialogProps = {
  /** Gets a message such as “The key “ci” is revoked.” */
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
};

/** The dialog of a key that is open, if any. */
export function KeyDialogs({ open, ...props }: DialogProps & { readonly open: OpenKeyDialog | undefined }) {
  if (open === undefined) return null;
  return open.action === "revoke" ? (
    <RevokeDialog apiKey={open.key} {...props} />
  ) : (
    <LimitDialog apiKey={open.key} {...props} />
  );
}

type KeyDialogProps = DialogProps & { readonly apiKey: ApiKey };

function RevokeDialog({ apiKey, onDone, onClose }: KeyDialogProps) {
  const api = useApi();
  const revoke = async (reason: string) => {
    await api.revokeKey({ keyId: apiKey.id, reason });
    onDone(`The key “${apiKey.name}” is revoked.`);
  };
  return (
    <ReasonDialog
      title={`Revoke “${apiKey.name}”?`}
      action="Revoke key"
      tone="danger"
      onSubmit={revoke}
      onClose={onClose}
    >
      Every server rejects calls with <code>{apiKey.maskedKey}</code> at once, and streams of the key are cut.
      This cannot be undone.
    </ReasonDialog>
  );
}

function LimitDialog({ apiKey, onDone, onClose }: KeyDialogProps) {
  const api = useApi();
  const [rpm, setRpm] = useState(String(apiKey.rateLimitRpm));
  const save = async (reason: string) => {
    await api.setKeyLimit({ keyId: apiKey.id, reason, ...(rpm !== "" && { rateLimitRpm: Number(rpm) }) });
    onDone(`The limit of the key “${apiKey.name}” is changed.`);
  };
  return (
    <ReasonDialog
      title={`Limit “${apiKey.name}”`}
      action="Set limit"
      errors={{ rpm: rpmError(rpm) }}
      onSubmit={save}
      onClose={onClose}
    >
      {(errors) => (
        <TextField
          label="Requests per minute"
          hint={`Empty: the limit of the plan “${apiKey.plan}”.`}
          error={errors.rpm}
          value={rpm}
          maxLength={7}
          inputMode="numeric"
          onChange={(text) => setRpm(text.trim())}
        />
      )}
    </ReasonDialog>
  );
}
