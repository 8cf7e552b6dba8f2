import { useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Dialog } from "./dialog.tsx";
import type { ChangeDialog } from "./form-dialog.tsx";
import { RoleField } from "./role-field.tsx";
import { Notice } from "./states.tsx";
import { TextField } from "./text-field.tsx";

type InviteDialogProps = {
  readonly title: string;
  /** Whether the link gives a role in an account, which is chosen. */
  readonly hasRole: boolean;
  /** Returns the link. */
  readonly create: (invitation: { readonly role: string; readonly email: string }, reason: string) => Promise<string>;
  readonly onDone: () => void;
  readonly onClose: () => void;
  readonly Form: ChangeDialog;
};

/** Asks for a role and an address, then shows the link once. */
export function InviteDialog({ title, hasRole, create, onDone, onClose, Form }: InviteDialogProps) {
  const [role, setRole] = useState("developer");
  const [email, setEmail] = useState("");
  const [url, setUrl] = useState<string>();
  // The form closes when it succeeds, but the link is shown then.
  const isCreated = useRef(false);
  if (url !== undefined) return <LinkDialog url={url} email={email.trim()} onClose={onClose} />;
  const address = email.trim();
  return (
    <Form
      title={title}
      action="Create link"
      errors={{
        email: address === "" || /^[^@\s]+@[^@\s]+$/.test(address) ? undefined : "Enter an e-mail address, or nothing.",
      }}
      onSubmit={async (reason) => {
        const link = await create({ role, email: address }, reason);
        isCreated.current = true;
        setUrl(link);
        onDone();
      }}
      onClose={() => isCreated.current || onClose()}
    >
      {(errors) => (
        <>
          {hasRole && <RoleField value={role} onChange={setRole} />}
          <TextField
            label="E-mail address"
            hint="Only a person with this address can then use the link. Leave empty if the first person who opens the link may use it."
            error={errors.email}
            value={email}
            maxLength={254}
            inputMode="email"
            onChange={setEmail}
          />
        </>
      )}
    </Form>
  );
}

type LinkDialogProps = { readonly url: string; readonly email: string; readonly onClose: () => void };

function LinkDialog({ url, email, onClose }: LinkDialogProps) {
  return (
    <Dialog title="Send this link" onClose={onClose} canClose={false}>
      <div class="dialog-body">
        <Notice tone="warn">The link is shown only now. It works once, for seven days.</Notice>
        <p class="wrap">Send it to {email || "the person whom you invite"}.</p>
        <code class="shown-secret">{url}</code>
        <div class="dialog-actions">
          <CopyButton text={url} what="link" />
          <Button tone="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
