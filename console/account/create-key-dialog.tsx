import { useState } from "preact/hooks";
import { FormDialog } from "../shared/form-dialog.tsx";
import { NEW_KEY, NewKeyFields, newKeyErrors, newKeyPropertiesOf } from "../shared/new-key.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { Viewer } from "./viewer.ts";

const HINTS = {
  rpm: "At most the limit of the key you are signed in with. Empty: as many as that key.",
  expiry: "Not later than the key you are signed in with.",
} as const;

/** A key expires with the key that created it at the latest. */
export const NO_EXPIRY = "As late as possible";

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
    <FormDialog
      title="Create key"
      action="Create key"
      errors={newKeyErrors(form)}
      onSubmit={create}
      onClose={onClose}
    >
      {(errors) => (
        <NewKeyFields
          form={form}
          errors={errors}
          onChange={(part) => setForm((before) => ({ ...before, ...part }))}
          hints={HINTS}
          noExpiry={NO_EXPIRY}
          models={models}
        />
      )}
    </FormDialog>
  );
}
