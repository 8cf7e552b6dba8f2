import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Activity } from "../../gen/vx/account/v1/account_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { detailText } from "../shared/detail-text.ts";
import { PageHeader } from "../shared/frame.tsx";
import { ListDownload, PAGE_SIZE } from "../shared/list-download.tsx";
import { methodText } from "../shared/method-text.ts";
import { EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
import { hrefOf } from "../shared/use-route.ts";
import { ActivityFilters, activityFilterOf, activityRequestOf } from "./activity-filters.tsx";
import type { Viewer } from "./viewer.ts";

const COLUMNS: readonly Column<Activity>[] = [
  { header: "Time", isRowHeader: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  { header: "By", cell: (activity) => <div class="address wrap">{actorOf(activity)}</div> },
  {
    header: "Change",
    cell: ({ method, target }) => (
      <>
        {methodText(method)}
        <div>
          <code class="muted wrap">{target}</code>
        </div>
      </>
    ),
  },
  {
    header: "Details",
    isLong: true,
    cell: ({ details }) =>
      Object.entries(details)
        .map(([name, value]) => detailText(name, value).join(": "))
        .join(", "),
  },
  {
    header: "Outcome",
    cell: ({ outcome }) => (outcome === "ok" ? "Done" : `Refused: ${outcome.replaceAll("_", " ")}`),
  },
];

function actorOf({ email, personId }: Activity): string {
  if (email !== "") return email;
  return personId === "" ? "Operator or server" : personId;
}

type ActivitySectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** What members and operators changed. */
export function ActivitySection({ viewer, params }: ActivitySectionProps) {
  const filter = activityFilterOf(params);
  const load = async (pageToken: string, pageSize: number, options: { readonly signal: AbortSignal }) => {
    const request = { ...activityRequestOf(filter), pageToken, pageSize };
    const page = await viewer.pageService.listActivity(request, options);
    return { rows: page.activity, nextPageToken: page.nextPageToken };
  };
  const pages = usePages((pageToken, signal) => load(pageToken, 25, { signal }), JSON.stringify([viewer.id, filter]));
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <>
      <PageHeader title="Activity">
        <ListDownload
          file={{
            name: "the activity",
            fileName: "activity",
            header: ["created_at", "email", "person_id", "method", "target", "outcome", "details"],
            cellsOf,
            load: (pageToken, options) => load(pageToken, PAGE_SIZE, options),
          }}
        />
      </PageHeader>
      <ActivityFilters viewer={viewer} filter={filter} />
      <PagedTable
        caption="Activity"
        columns={COLUMNS}
        keyOf={(row) => String(pages.data?.rows.indexOf(row))}
        pages={pages}
        empty={
          isFiltered ? (
            <EmptyState title="No activity matches the filters">
              <a href={hrefOf("activity")}>Show all activity</a>
            </EmptyState>
          ) : (
            <EmptyState title="No activity yet">Changes by members and operators appear here.</EmptyState>
          )
        }
      />
      <ZoneNote />
    </>
  );
}

function cellsOf({ createdAt, email, personId, method, target, outcome, details }: Activity) {
  const time = createdAt ? timestampDate(createdAt).toISOString() : "";
  return [time, email, personId, method, target, outcome, JSON.stringify(details)];
}
