import { Button } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Dialog } from "./dialog.tsx";
import { Notice } from "./states.tsx";

type SecretDialogProps = {
  /** What the secret is: "key". */
  readonly what: string;
  readonly secret: string;
  /** A first call with the secret, for a shell. */
  readonly command?: string;
  /** Says what else the change did. */
  readonly note?: string | undefined;
  readonly onClose: () => void;
};

/** Shows a secret once. Escape does not close it. */
export function SecretDialog({ what, secret, command, note, onClose }: SecretDialogProps) {
  return (
    <Dialog title={`Save the new ${what}`} onClose={onClose} canClose={false}>
      <div class="dialog-body">
        <Notice tone="warn">The {what} is shown only now. Copy it to the place where you keep secrets.</Notice>
        <code class="shown-secret">{secret}</code>
        {note !== undefined && <p>{note}</p>}
        {command !== undefined && (
          <>
            <p>To try it, paste this command into a terminal:</p>
            <code class="shown-command">{command}</code>
          </>
        )}
        <div class="dialog-actions">
          {command !== undefined && <CopyButton text={command} what="command" />}
          <CopyButton text={secret} what={what} />
          <Button tone="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
