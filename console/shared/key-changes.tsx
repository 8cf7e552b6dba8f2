import { useState } from "preact/hooks";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import type { ChangeDialog } from "./form-dialog.tsx";
import { KeyFields, keyChangesOf, keyFormErrors, keyFormOf } from "./key-fields.tsx";
import { OverlapField } from "./overlap-field.tsx";

const HINTS = {
  rpm: "Empty: as many as its plan and its creator allow.",
  expiry: "The key stops working at this time.",
} as const;

type EditKeyDialogProps = {
  readonly apiKey: ApiKey;
  readonly models: readonly string[];
  readonly update: (request: ReturnType<typeof keyChangesOf> & { readonly keyId: string }, reason: string) => Promise<unknown>;
  /** Gets a message such as “The key “ci” is changed.” */
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
  readonly noExpiry: string;
  readonly Form: ChangeDialog;
};

/** Changes the properties of a key. */
export function EditKeyDialog({ apiKey, models, update, onDone, onClose, noExpiry, Form }: EditKeyDialogProps) {
  const [before] = useState(() => keyFormOf(apiKey));
  const [form, setForm] = useState(before);
  const save = async (reason: string) => {
    await update({ keyId: apiKey.id, ...keyChangesOf(form, before) }, reason);
    onDone(`The key “${form.name.trim()}” is changed.`);
  };
  return (
    <Form title={`Edit “${apiKey.name}”`} action="Save" errors={keyFormErrors(form)} onSubmit={save} onClose={onClose}>
      {(errors) => (
        <KeyFields
          form={form}
          errors={errors}
          onChange={(part) => setForm((now) => ({ ...now, ...part }))}
          hints={HINTS}
          noExpiry={noExpiry}
          models={models}
          // A key can only lose scopes.
          scopes={apiKey.scopes}
          apiKey={apiKey}
        />
      )}
    </Form>
  );
}

/** The key with its new secret. */
export type RotatedKey = { readonly apiKey?: ApiKey | undefined; readonly secret: string };

type RotateKeyDialogProps = {
  readonly apiKey: ApiKey;
  readonly rotate: (request: { readonly keyId: string; readonly overlapSeconds: number }, reason: string) => Promise<RotatedKey>;
  readonly onRotated: (rotated: RotatedKey) => void;
  readonly onClose: () => void;
  readonly Form: ChangeDialog;
};

/** Gives a key a new secret. */
export function RotateKeyDialog({ apiKey, rotate, onRotated, onClose, Form }: RotateKeyDialogProps) {
  const [overlap, setOverlap] = useState("86400");
  const save = async (reason: string) => onRotated(await rotate({ keyId: apiKey.id, overlapSeconds: Number(overlap) }, reason));
  return (
    <Form title={`Rotate “${apiKey.name}”`} action="Rotate key" errors={{}} onSubmit={save} onClose={onClose}>
      {() => (
        <>
          <p>The key gets a new secret. Its id, its limits and its history stay.</p>
          <OverlapField value={overlap} onChange={setOverlap} hasPrevious={apiKey.previousExpiresAt !== undefined} />
        </>
      )}
    </Form>
  );
}
