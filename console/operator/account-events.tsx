import { AccountEventList, EVENTS_PER_PAGE, type EventSource } from "../shared/account-event-list.tsx";
import { ACCOUNT_EVENT_TYPES } from "../shared/account-event-text.ts";
import { PageHeader } from "../shared/frame.tsx";
import { ticks } from "../shared/use-live.ts";
import { AccountFilter } from "./account-filter.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { accountHref } from "./links.ts";
import { type AdminClient, useApi } from "./operator-session.ts";

/** The events of all accounts, or of one, and those about the prices of models. */
export function EventsSection({ params }: { readonly params: URLSearchParams }) {
  const account = params.get("account") ?? "";
  const source = eventsOf(useApi(), account, "events");
  return (
    <>
      <PageHeader title="Events" />
      <AccountEventList source={source} type={params.get("type") ?? ""} accountHref={(id) => accountHref(id, { tab: "events" })}>
        <AccountFilter section="events" value={account} />
      </AccountEventList>
    </>
  );
}

/** The events of an account, as a part of its page. */
export function AccountEvents({ account, params }: AccountTabProps) {
  const source = eventsOf(useApi(), account.id, "accounts");
  return <AccountEventList source={source} type={params.get("type") ?? ""} />;
}

/** @param accountId empty for all accounts */
function eventsOf(api: AdminClient, accountId: string, section: string): EventSource {
  return {
    id: accountId,
    list: async (type, pageToken, signal) => {
      const types = type === "" ? [] : [type];
      const request = { accountId, types, pageToken, pageSize: EVENTS_PER_PAGE };
      const { events, nextPageToken } = await api.listEvents(request, { signal });
      return { rows: events, nextPageToken };
    },
    watch: (_, signal) => ticks(signal),
    types: ACCOUNT_EVENT_TYPES,
    section,
  };
}
