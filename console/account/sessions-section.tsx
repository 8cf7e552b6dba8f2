import type { Session } from "../../gen/vx/account/v1/account_pb.js";
import { Button } from "../shared/button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import type { Viewer } from "./viewer.ts";

/** The browsers in which the person is signed in. */
export function SessionsSection({ viewer }: { readonly viewer: Viewer }) {
  const { pageService } = viewer;
  const toast = useToast();
  const pages = usePages(
    async (_, signal) => ({
      rows: (await pageService.listSessions({}, { signal })).sessions,
      nextPageToken: "",
    }),
    viewer.id,
  );
  const end = (sessionId: string) =>
    void pageService.endSession({ sessionId }).then(
      () => {
        toast("The session is ended.");
        pages.reload();
      },
      () => toast("The server did not end the session. Try again."),
    );
  const columns: readonly Column<Session>[] = [
    {
      header: "Browser",
      isRowHeader: true,
      isLong: true,
      cell: ({ userAgent, current }) => (
        <>
          <span class="wrap">{userAgent || "Unknown"}</span> {current && <Badge tone="good">This one</Badge>}
        </>
      ),
    },
    { header: "Address", cell: ({ address }) => <code>{address}</code> },
    { header: "Signed in", cell: ({ createdAt }) => <Time at={createdAt} /> },
    { header: "Last used", cell: ({ usedAt }) => <Time at={usedAt} /> },
    {
      header: "Actions",
      isAction: true,
      cell: ({ id, address, current }) =>
        !current && (
          <Button onClick={() => end(id)} aria-label={`Sign out ${address}`}>
            Sign out
          </Button>
        ),
    },
  ];
  return (
    <>
      <PageHeader title="Your sessions" />
      <p>The browsers in which you are signed in. End those that you do not know.</p>
      <PagedTable
        caption="Sessions"
        columns={columns}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No sessions" />}
      />
      <ZoneNote />
    </>
  );
}
