import { useState } from "preact/hooks";
import { FormDialog } from "../shared/form-dialog.tsx";
import { NEW_KEY, NewKeyFields, newKeyErrors, newKeyPropertiesOf } from "../shared/new-key.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { Viewer } from "./viewer.ts";

const HINTS_OF_KEY = {
  rpm: "At most the limit of the key you are signed in with. Empty: as many as that key.",
  expiry: "Not later than the key you are signed in with.",
} as const;

const HINTS_OF_MEMBER = {
  rpm: "At most the limit of the plan. Empty: as many as the plan allows.",
  expiry: "The key stops working at this time.",
} as const;

/** A key expires with the key that created it at the latest; members create keys without an end. */
export function noExpiryOf({ membership }: Viewer): string {
  return membership ? "Never" : "As late as possible";
}

type CreateKeyDialogProps = {
  readonly viewer: Viewer;
  readonly onCreated: (secret: string) => void;
  readonly onClose: () => void;
};

/** Asks for the properties of a key. */
export function CreateKeyDialog({ viewer, onCreated, onClose }: CreateKeyDialogProps) {
  const [form, setForm] = useState(NEW_KEY);
  const { data: models = [] } = useQuery(viewer.modelIds, []);
  const create = async () => {
    const { secret } = await viewer.keyService.createKey(newKeyPropertiesOf(form));
    onCreated(secret);
  };
  return (
    <FormDialog title="Create key" action="Create key" errors={newKeyErrors(form)} onSubmit={create} onClose={onClose}>
      {(errors) => (
        <NewKeyFields
          form={form}
          errors={errors}
          onChange={(part) => setForm((before) => ({ ...before, ...part }))}
          hints={viewer.membership ? HINTS_OF_MEMBER : HINTS_OF_KEY}
          noExpiry={noExpiryOf(viewer)}
          scopes={viewer.scopes}
          models={models}
        />
      )}
    </FormDialog>
  );
}
