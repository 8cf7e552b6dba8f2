import { useState } from "preact/hooks";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { PagedTable } from "../shared/data-table.tsx";
import { SecretDialog } from "../shared/secret-dialog.tsx";
import { EmptyState } from "../shared/states.tsx";
import { ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import type { AccountTabProps } from "./account-tab-props.ts";
import { ActionButton } from "./action-button.tsx";
import { CreateKeyDialog } from "./create-key-dialog.tsx";
import { KeyDialogs, keyColumnsOf, type OpenKeyDialog } from "./key-actions.tsx";
import { useApi } from "./operator-session.ts";

/** The keys of an account. */
export function AccountKeys({ account }: AccountTabProps) {
  const api = useApi();
  const toast = useToast();
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [open, setOpen] = useState<OpenKeyDialog>();
  const pages = usePages<ApiKey>(async (pageToken, signal) => {
    const request = { accountId: account.id, pageToken, pageSize: 25 };
    const page = await api.listKeys(request, { signal });
    return { rows: page.apiKeys, nextPageToken: page.nextPageToken };
  }, account.id);
  const created = (text: string) => {
    setCreating(false);
    setSecret(text);
    pages.reload();
  };
  const changed = (text: string) => {
    toast(text);
    pages.reload();
  };
  return (
    <>
      <div class="page-actions">
        <ActionButton method="createKey" tone="primary" onClick={() => setCreating(true)}>
          Create key
        </ActionButton>
      </div>
      <PagedTable
        caption="Keys"
        columns={keyColumnsOf(setOpen)}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No keys yet">Calls to the API need a key.</EmptyState>}
      />
      <ZoneNote />
      {isCreating && <CreateKeyDialog account={account} onCreated={created} onClose={() => setCreating(false)} />}
      {secret !== undefined && <SecretDialog what="key" secret={secret} onClose={() => setSecret(undefined)} />}
      <KeyDialogs open={open} onDone={changed} onClose={() => setOpen(undefined)} />
    </>
  );
}
