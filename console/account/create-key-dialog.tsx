import { useState } from "preact/hooks";
import { FormDialog } from "../shared/form-dialog.tsx";
import { KeyFields, keyFormErrors, keyPropertiesOf, NEW_KEY } from "../shared/key-fields.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { Viewer } from "./viewer.ts";

const HINTS = {
  rpm: "At most the limit of the key you are signed in with. Empty: as many as that key.",
  expiry: "Not later than the key you are signed in with.",
} as const;

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
    const { secret } = await viewer.keyService.createKey(keyPropertiesOf(form));
    onCreated(secret);
  };
  return (
    <FormDialog
      title="Create key"
      action="Create key"
      errors={keyFormErrors(form)}
      onSubmit={create}
      onClose={onClose}
    >
      {(errors) => (
        <KeyFields
          form={form}
          errors={errors}
          onChange={(part) => setForm({ ...form, ...part })}
          hints={HINTS}
          noExpiry="As late as possible"
          models={models}
        />
      )}
    </FormDialog>
  );
}
