import { useId } from "preact/hooks";

type ChoicesProps = {
  readonly label: string;
  readonly hint?: string;
  readonly choices: readonly { readonly id: string; readonly text: string }[];
  readonly selected: readonly string[];
  readonly error?: string | undefined;
  readonly onChange: (selected: readonly string[]) => void;
};

/** Values of which any number can be selected. */
export function Choices({ label, hint, choices, selected, error, onChange }: ChoicesProps) {
  const noteId = useId();
  const note = error ?? hint;
  const toggle = (id: string, isOn: boolean) => onChange(isOn ? [...selected, id] : selected.filter((one) => one !== id));
  return (
    <fieldset class="choices" aria-describedby={note === undefined ? undefined : noteId}>
      <legend class="field-name">{label}</legend>
      <div class="choice-list">
        {choices.map(({ id, text }) => (
          <label key={id} class="choice">
            <input
              type="checkbox"
              checked={selected.includes(id)}
              onChange={(event) => toggle(id, event.currentTarget.checked)}
            />
            <span class="wrap">
              {id} <span class="muted small">{text}</span>
            </span>
          </label>
        ))}
      </div>
      {note !== undefined && (
        <p id={noteId} class={error === undefined ? "field-hint" : "field-error"}>
          {note}
        </p>
      )}
    </fieldset>
  );
}
