import type { AccountTabProps } from "./account-tab-props.ts";
import { eventFilterOf } from "./event-filters.tsx";
import { EventList } from "./event-list.tsx";

/** What operators changed of the account. */
export function AccountActivity({ account }: AccountTabProps) {
  return <EventList filter={eventFilterOf(new URLSearchParams({ account: account.id }))} />;
}
