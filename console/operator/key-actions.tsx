import { useState } from "preact/hooks";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { Copyable } from "../shared/copy-button.tsx";
import type { Column } from "../shared/data-table.tsx";
import { EditKeyDialog, type RotatedKey, RotateKeyDialog } from "../shared/key-changes.tsx";
import { KeyState, previousText } from "../shared/key-state.tsx";
import { numberText } from "../shared/money.tsx";
import { SecretDialog } from "../shared/secret-dialog.tsx";
import { Time } from "../shared/time.tsx";
import { ActionButton } from "./action-button.tsx";
import { useModelIds } from "./limits.tsx";
import { keyHref } from "./links.ts";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** The change of a key whose dialog is open. */
export type OpenKeyDialog = { readonly key: ApiKey; readonly action: "edit" | "rotate" | "revoke" };

export function keyColumnsOf(onOpen: (dialog: OpenKeyDialog) => void): readonly Column<ApiKey>[] {
  return [
    {
      header: "Key",
      isRowHeader: true,
      cell: ({ id, name, maskedKey }) => (
        <>
          <a class="row-link" href={keyHref(id)}>
            {name}
          </a>
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
      cell: (key) => <KeyButtons apiKey={key} onOpen={onOpen} />,
    },
  ];
}

type KeyButtonsProps = {
  readonly apiKey: ApiKey;
  readonly onOpen: (dialog: OpenKeyDialog) => void;
};

/** What operators can change about an active key. */
export function KeyButtons({ apiKey, onOpen }: KeyButtonsProps) {
  if (apiKey.state !== "active") return null;
  const actions = [
    ["updateKey", "edit", "Edit"],
    ["rotateKey", "rotate", "Rotate"],
    ["revokeKey", "revoke", "Revoke"],
  ] as const;
  return (
    <div class="row-actions">
      {actions.map(([method, action, text]) => (
        <ActionButton
          key={action}
          method={method}
          label={`${text} ${apiKey.name}`}
          onClick={() => onOpen({ key: apiKey, action })}
        >
          {text}
        </ActionButton>
      ))}
    </div>
  );
}

type DialogProps = {
  /** Gets a message such as “The key “ci” is revoked.” */
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
};

/** The dialog of a key that is open, if any, and the secret after a rotation. */
export function KeyDialogs({ open, ...props }: DialogProps & { readonly open: OpenKeyDialog | undefined }) {
  const { onDone, onClose } = props;
  const api = useApi();
  const models = useModelIds();
  const [rotated, setRotated] = useState<RotatedKey>();
  const apiKey = open?.key;
  return (
    <>
      {apiKey && open.action === "revoke" && <RevokeDialog apiKey={apiKey} {...props} />}
      {apiKey && open.action === "edit" && (
        <EditKeyDialog
          apiKey={apiKey}
          models={models}
          update={(request, reason) => api.updateKey({ ...request, reason })}
          noExpiry="Never"
          Form={ReasonDialog}
          {...props}
        />
      )}
      {apiKey && open.action === "rotate" && (
        <RotateKeyDialog
          apiKey={apiKey}
          rotate={(request, reason) => api.rotateKey({ ...request, reason })}
          onRotated={(response) => {
            setRotated(response);
            onDone(`The key “${apiKey.name}” is rotated.`);
          }}
          onClose={onClose}
          Form={ReasonDialog}
        />
      )}
      {rotated && (
        <SecretDialog
          what="key"
          secret={rotated.secret}
          note={rotated.apiKey && previousText(rotated.apiKey)}
          onClose={() => setRotated(undefined)}
        />
      )}
    </>
  );
}

function RevokeDialog({ apiKey, onDone, onClose }: DialogProps & { readonly apiKey: ApiKey }) {
  const api = useApi();
  const revoke = async (reason: string) => {
    await api.revokeKey({ keyId: apiKey.id, reason });
    onDone(`The key “${apiKey.name}” is revoked.`);
  };
  return (
    <ReasonDialog title={`Revoke “${apiKey.name}”?`} action="Revoke key" tone="danger" onSubmit={revoke} onClose={onClose}>
      Every server rejects calls with <code>{apiKey.maskedKey}</code> at once, and streams of the key are cut. This cannot be
      undone.
    </ReasonDialog>
  );
}
