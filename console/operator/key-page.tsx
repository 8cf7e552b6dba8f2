import { useState } from "preact/hooks";
import type { FoundKey } from "../../gen/vx/admin/v1/admin_pb.js";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { Detail, Details, IdDetail } from "../shared/details.tsx";
import { KeyDetails } from "../shared/key-fields.tsx";
import { KeyState, previousText } from "../shared/key-state.tsx";
import { EmptyState, ErrorState, Notice } from "../shared/states.tsx";
import { Time } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { useQuery } from "../shared/use-query.ts";
import { useSectionAddress } from "../shared/use-route.ts";
import { KeyButtons, KeyDialogs, type OpenKeyDialog } from "./key-actions.tsx";
import { Limits } from "./limits.tsx";
import { accountHref, planHref } from "./links.ts";
import { useApi } from "./operator-session.ts";

/** One key: what it may do, and all limits that apply to it. */
export function KeyPage({ id }: { readonly id: string }) {
  const api = useApi();
  const query = useQuery(async (signal) => (await api.searchKeys({ query: id }, { signal })).keys, [id]);
  const found = query.data?.find(({ apiKey }) => apiKey?.id === id);
  return (
    <>
      <nav class="breadcrumb small" aria-label="Breadcrumb">
        <a href={useSectionAddress("keys")}>Keys</a>
        <span aria-hidden="true">/</span>
        <code>{id}</code>
      </nav>
      {query.problem && <ErrorState problem={query.problem} onRetry={query.reload} />}
      {query.data && !found && <EmptyState title="There is no key with this id" />}
      {found?.apiKey && <Key found={found} apiKey={found.apiKey} onChanged={query.reload} />}
    </>
  );
}

type KeyProps = {
  readonly found: FoundKey;
  readonly apiKey: ApiKey;
  readonly onChanged: () => void;
};

function Key({ found: { accountId, accountName }, apiKey, onChanged }: KeyProps) {
  const toast = useToast();
  const [open, setOpen] = useState<OpenKeyDialog>();
  const changed = (text: string) => {
    toast(text);
    onChanged();
  };
  const previous = previousText(apiKey);
  return (
    <>
      <div class="page-header">
        <h1 class="title-with-badge">
          <span class="wrap">{apiKey.name}</span> <KeyState state={apiKey.state} />
        </h1>
        <KeyButtons apiKey={apiKey} onOpen={setOpen} />
      </div>
      {previous !== undefined && <Notice tone="info">{previous}</Notice>}
      <section class="card" aria-labelledby="details-title">
        <h2 id="details-title">Details</h2>
        <Details>
          <Detail name="Account">
            <a href={accountHref(accountId, { tab: "keys" })}>{accountName}</a>
          </Detail>
          <IdDetail name="Key id" id={apiKey.id} />
          <Detail name="Key">
            <code>{apiKey.maskedKey}</code>
          </Detail>
          <Detail name="Plan">
            <a href={planHref(apiKey.plan)}>{apiKey.plan}</a>
          </Detail>
          <KeyDetails apiKey={apiKey} />
          <Detail name="Created">
            <Time at={apiKey.createdAt} />
          </Detail>
          <Detail name="Last used">
            <Time at={apiKey.lastUsedAt} none="Never" />
          </Detail>
        </Details>
      </section>
      <section class="part" aria-labelledby="limits-title">
        <h2 id="limits-title">Limits</h2>
        <Limits owner={{ case: "keyId", value: apiKey.id }} isReadOnly={apiKey.state !== "active"} />
      </section>
      <KeyDialogs open={open} onDone={changed} onClose={() => setOpen(undefined)} />
    </>
  );
}
