import { useState } from "preact/hooks";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { Button } from "../shared/button.tsx";
import { ConfirmDialog } from "../shared/confirm-dialog.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { KeyState } from "../shared/key-state.tsx";
import { numberText } from "../shared/money.tsx";
import { SecretDialog } from "../shared/secret-dialog.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { CreateKeyDialog } from "./create-key-dialog.tsx";
import type { Viewer } from "./viewer.ts";

/** The keys of the account. Creating and revoking need a key with the scope "keys", and so does the list. */
export function KeysSection({ viewer }: { readonly viewer: Viewer }) {
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [revoked, setRevoked] = useState<ApiKey>();
  const toast = useToast();
  const pages = usePages(async (pageToken, signal) => {
    const page = await viewer.keyService.listKeys({ pageToken, pageSize: 25 }, { signal });
    return { rows: page.apiKeys, nextPageToken: page.nextPageToken };
  }, "");
  if (pages.problem?.reason === "INSUFFICIENT_SCOPE") return <WithoutScope viewer={viewer} />;
  const revoke = async (key: ApiKey) => {
    await viewer.keyService.revokeKey({ keyId: key.id });
    toast(`The key “${key.name}” is revoked.`);
    pages.reload();
  };
  const created = (text: string) => {
    setCreating(false);
    setSecret(text);
    pages.reload();
  };
  return (
    <>
      <PageHeader title="API keys">
        <Button tone="primary" onClick={() => setCreating(true)} disabled={pages.data === undefined}>
          Create key
        </Button>
      </PageHeader>
      <PagedTable
        caption="API keys"
        columns={columnsOf(viewer.me.key, setRevoked)}
        keyOf={(key) => key.id}
        pages={pages}
        empty={<EmptyState title="No keys" />}
      />
      <ZoneNote />
      {isCreating && (
        <CreateKeyDialog viewer={viewer} onCreated={created} onClose={() => setCreating(false)} />
      )}
      {secret !== undefined && (
        <SecretDialog
          what="key"
          secret={secret}
          command={`curl ${location.origin}/v1/me -H 'Authorization: Bearer ${secret}'`}
          onClose={() => setSecret(undefined)}
        />
      )}
      {revoked && (
        <ConfirmDialog
          title={`Revoke “${revoked.name}”?`}
          action="Revoke key"
          tone="danger"
          onConfirm={() => revoke(revoked)}
          onClose={() => setRevoked(undefined)}
        >
          <p>
            Every server rejects calls with <code>{revoked.maskedKey}</code> at once, and streams of the key
            are cut. This cannot be undone.
          </p>
          {revoked.maskedKey === viewer.me.key && (
            <p>You are signed in with this key. Revoking it signs you out.</p>
          )}
        </ConfirmDialog>
      )}
    </>
  );
}

function columnsOf(own: string, onRevoke: (key: ApiKey) => void): readonly Column<ApiKey>[] {
  return [
    {
      header: "Name",
      isRowHeader: true,
      cell: ({ name, maskedKey, createdAt }) => (
        <>
          {name} {maskedKey === own && <Badge tone="neutral">This key</Badge>}
          <div class="nowrap">
            <code class="muted">{maskedKey}</code>
          </div>
          <div class="muted small">
            Created <Time at={createdAt} />
          </div>
        </>
      ),
    },
    { header: "State", cell: ({ state }) => <KeyState state={state} /> },
    { header: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
    {
      header: "Rate limit",
      isNumber: true,
      cell: ({ rateLimitRpm }) => `${numberText(rateLimitRpm)}/min`,
    },
    { header: "Last used", cell: ({ lastUsedAt }) => <Time at={lastUsedAt} none="Never" /> },
    { header: "Expires", cell: ({ expiresAt }) => <Time at={expiresAt} none="Never" /> },
    {
      header: "Actions",
      isAction: true,
      cell: (key) =>
        key.state === "active" && (
          <Button onClick={() => onRevoke(key)} aria-label={`Revoke ${key.name}`}>
            Revoke
          </Button>
        ),
    },
  ];
}

function WithoutScope({ viewer: { me } }: { readonly viewer: Viewer }) {
  return (
    <>
      <PageHeader title="API keys" />
      <div class="panel">
        <EmptyState title="This key cannot manage keys">
          <p>
            The list of keys needs a key with the scope “keys”. You are signed in with “{me.keyName}” (
            {me.key}), which does not have it. Sign out, then sign in with a key that does.
          </p>
        </EmptyState>
      </div>
    </>
  );
}
