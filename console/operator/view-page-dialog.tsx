import { useRef, useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { Dialog } from "../shared/dialog.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

type ViewPageDialogProps = { readonly account: Account; readonly onClose: () => void };

/** Makes the link to the page of a customer. The operator opens it: browsers block a window that opens after a wait. */
export function ViewPageDialog({ account, onClose }: ViewPageDialogProps) {
  const api = useApi();
  const [url, setUrl] = useState<string>();
  const isCreated = useRef(false);
  if (url !== undefined) {
    return (
      <Dialog title="The page is ready" onClose={onClose}>
        <div class="dialog-body">
          <p>The link works once, within a minute. The view ends after an hour.</p>
          <div class="dialog-actions">
            <a class="button button-primary" href={url} target="_blank" rel="noopener noreferrer" onClick={onClose}>
              Open the page of “{account.name}”
            </a>
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <ReasonDialog
      title="View customer page"
      action="Continue"
      hint="Shown in the operator log and to the members of the account."
      onSubmit={async (reason) => {
        const link = await api.viewCustomerPage({ accountId: account.id, reason });
        isCreated.current = true;
        setUrl(link.url);
      }}
      onClose={() => isCreated.current || onClose()}
    >
      <p>
        You see what the members of “{account.name}” see, and can change nothing. A session of your own on the customer page is
        replaced.
      </p>
    </ReasonDialog>
  );
}
