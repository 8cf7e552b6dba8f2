import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { ConfirmDialog } from "../shared/confirm-dialog.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { EditKeyDialog, type RotatedKey, RotateKeyDialog } from "../shared/key-changes.tsx";
import { KeyLines } from "../shared/key-fields.tsx";
import { KeyState, previousText } from "../shared/key-state.tsx";
import { limitAmountText, limitText } from "../shared/limit-list.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { SecretDialog } from "../shared/secret-dialog.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";
import { Time, ZONE, ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useQuery } from "../shared/use-query.ts";
import { hrefOf } from "../shared/use-route.ts";
import { Action } from "./action.tsx";
import { AnthropicClients } from "./anthropic-clients.tsx";
import { CreateKeyDialog, noExpiryOf } from "./create-key-dialog.tsx";
import { PlainForm } from "./key-page.tsx";
import type { Viewer } from "./viewer.ts";

/** The keys of the account. Creating and revoking need a key with the scope "keys", and so does the list. */
export function KeysSection({ viewer }: { readonly viewer: Viewer }) {
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<RotatedKey>();
  const [open, setOpen] = useState<OpenDialog>();
  const { data: models = [] } = useQuery(viewer.modelIds, []);
  const { data: spent } = useQuery((signal) => spentOf(viewer, signal), []);
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
  const closeAndShow = (key: RotatedKey) => {
    setCreating(false);
    setCreated(key);
    pages.reload();
  };
  const changed = (text: string) => {
    toast(text);
    pages.reload();
  };
  const close = () => setOpen(undefined);
  const opened = (action: OpenDialog["action"]) => (open?.action === action ? open.key : undefined);
  const [edited, rotated, revoked] = [opened("edit"), opened("rotate"), opened("revoke")];
  return (
    <>
      <PageHeader title="API keys">
        <Action
          viewer={viewer}
          method="createKey"
          tone="primary"
          onClick={() => setCreating(true)}
          disabled={pages.data === undefined}
        >
          Create key
        </Action>
      </PageHeader>
      <PagedTable
        caption="API keys"
        columns={columnsOf(viewer, spent, setOpen)}
        keyOf={(key) => key.id}
        pages={pages}
        empty={<EmptyState title="No keys" />}
      />
      {viewer.membership && (
        <p class="muted small">
          The playground uses another key for each member, which expires after an hour, is not listed and counts as an active key.
        </p>
      )}
      <ZoneNote />
      <AnthropicClients viewer={viewer} />
      {isCreating && (
        <CreateKeyDialog viewer={viewer} onCreated={(secret) => closeAndShow({ secret })} onClose={() => setCreating(false)} />
      )}
      {edited && (
        <EditKeyDialog
          apiKey={edited}
          models={models}
          update={(request) => viewer.keyService.updateKey(request)}
          noExpiry={noExpiryOf(viewer)}
          onDone={changed}
          onClose={close}
          Form={PlainForm}
        />
      )}
      {rotated && (
        <RotateKeyDialog
          apiKey={rotated}
          rotate={(request) => viewer.keyService.rotateKey(request)}
          onRotated={closeAndShow}
          onClose={close}
          Form={PlainForm}
        />
      )}
      {created && (
        <SecretDialog
          what="key"
          secret={created.secret}
          command={`curl ${location.origin}/v1/me -H 'Authorization: Bearer ${created.secret}'`}
          note={created.apiKey && previousText(created.apiKey)}
          onClose={() => setCreated(undefined)}
        />
      )}
      {revoked && (
        <ConfirmDialog
          title={`Revoke “${revoked.name}”?`}
          action="Revoke key"
          tone="danger"
          onConfirm={() => revoke(revoked)}
          onClose={close}
        >
          <p>
            Every server rejects calls with <code>{revoked.maskedKey}</code> at once, and streams of the key are cut. This cannot
            be undone.
          </p>
          {revoked.maskedKey === viewer.me?.key && <p>You are signed in with this key. Revoking it signs you out.</p>}
        </ConfirmDialog>
      )}
    </>
  );
}

type OpenDialog = { readonly key: ApiKey; readonly action: "edit" | "rotate" | "revoke" };

const ACTIONS = [
  ["edit", "updateKey", "Edit"],
  ["rotate", "rotateKey", "Rotate"],
  ["revoke", "revokeKey", "Revoke"],
] as const;

function columnsOf(
  viewer: Viewer,
  spent: ReadonlyMap<string, bigint> | undefined,
  onOpen: (dialog: OpenDialog) => void,
): readonly Column<ApiKey>[] {
  return [
    {
      header: "Name",
      isRowHeader: true,
      cell: ({ id, name, maskedKey, createdAt }) => (
        <>
          <a class="row-link" href={hrefOf("keys", { id })}>
            {name}
          </a>{" "}
          {maskedKey === viewer.me?.key && <Badge tone="neutral">This key</Badge>}
          <div class="nowrap">
            <code class="muted">{maskedKey}</code>
          </div>
          <div class="muted small">
            Created <Time at={createdAt} />
          </div>
        </>
      ),
    },
    {
      header: "State",
      cell: (key) => (
        <>
          <KeyState state={key.state} />
          <div class="muted small">{previousText(key)}</div>
        </>
      ),
    },
    {
      header: "Access",
      cell: (key) => <KeyLines apiKey={key} />,
    },
    {
      header: "This month",
      cell: ({ id, rateLimitRpm, limits }) => (
        <>
          {spent ? <Money micros={spent.get(id) ?? 0n} /> : "–"}
          <div class="muted small">At most {numberText(rateLimitRpm)}/min</div>
          {limits.map((limit) => (
            <div key={limit.id} class="muted small">
              {limitText(limit)}: {limitAmountText(limit, limit.amount)}
            </div>
          ))}
        </>
      ),
    },
    {
      header: "Last used",
      cell: ({ lastUsedAt, expiresAt }) => (
        <>
          <Time at={lastUsedAt} none="Never" />
          <div class="muted small">
            {expiresAt ? (
              <>
                Expires <Time at={expiresAt} />
              </>
            ) : (
              "Does not expire"
            )}
          </div>
        </>
      ),
    },
    {
      header: "Actions",
      isAction: true,
      cell: (key) =>
        key.state === "active" && (
          <div class="row-actions">
            {ACTIONS.map(([action, method, text]) => (
              <Action
                key={action}
                viewer={viewer}
                method={method}
                apiKey={key}
                onClick={() => onOpen({ key, action })}
                label={`${text} ${key.name}`}
              >
                {text}
              </Action>
            ))}
          </div>
        ),
    },
  ];
}

/** By key, in the viewer's month. Undefined without the scope "read". */
async function spentOf({ usageService }: Viewer, signal: AbortSignal) {
  const now = new Date();
  const from = timestampFromDate(new Date(now.getFullYear(), now.getMonth(), 1));
  const { rows } = await usageService.getUsage({ from, groupBy: ["key"], tz: ZONE, pageSize: 1_000 }, { signal });
  return new Map(rows.map(({ keyId, costMicros }) => [keyId, costMicros]));
}

function WithoutScope({ viewer: { me } }: { readonly viewer: Viewer }) {
  return (
    <>
      <PageHeader title="API keys" />
      <div class="panel">
        <EmptyState title="This key cannot manage keys">
          <p>
            The list of keys needs a key with the scope “keys”. You are signed in with “{me?.keyName}” ({me?.key}), which does not
            have it. Sign out, then sign in with a key that does.
          </p>
        </EmptyState>
      </div>
    </>
  );
}
