import type { Activity } from "../../gen/vx/account/v1/account_pb.js";
import { capitalized } from "../shared/capitalized.ts";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { detailText } from "../shared/detail-text.ts";
import { PageHeader } from "../shared/frame.tsx";
import { EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
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
    cell: ({ details }) => (
      <span class="wrap">
        {Object.entries(details)
          .map(([name, value]) => detailText(name, value).join(": "))
          .join(", ")}
      </span>
    ),
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

/** "CreateKey" as "Create key". */
function methodText(method: string): string {
  return capitalized(method.replace(/\B[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
}

/** What members and operators changed. */
export function ActivitySection({ viewer }: { readonly viewer: Viewer }) {
  const pages = usePages(async (pageToken, signal) => {
    const page = await viewer.pageService.listActivity({ pageToken, pageSize: 25 }, { signal });
    return { rows: page.activity, nextPageToken: page.nextPageToken };
  }, viewer.id);
  return (
    <>
      <PageHeader title="Activity" />
      <PagedTable
        caption="Activity"
        columns={COLUMNS}
        keyOf={(row) => String(pages.data?.rows.indexOf(row))}
        pages={pages}
        empty={<EmptyState title="No activity yet">Changes by members and operators appear here.</EmptyState>}
      />
      <ZoneNote />
    </>
  );
}
