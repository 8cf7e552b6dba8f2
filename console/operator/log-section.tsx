import { PageHeader } from "../shared/frame.tsx";
import { EventFilters, eventFilterOf } from "./event-filters.tsx";
import { EventDownload, EventList } from "./event-list.tsx";

/** All changes by operators with their reasons, and the refused calls. */
export function LogSection({ params }: { readonly params: URLSearchParams }) {
  const filter = eventFilterOf(params);
  return (
    <>
      <PageHeader title="Operator log">
        <EventDownload filter={filter} />
      </PageHeader>
      <EventFilters filter={filter} />
      <EventList filter={filter} />
    </>
  );
}
