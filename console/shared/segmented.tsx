import { useId } from "preact/hooks";

type SegmentedProps<Value extends string> = {
  readonly label: string;
  readonly options: readonly { readonly value: Value; readonly text: string }[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
};

/** A choice between a few views. */
export function Segmented<Value extends string>({ label, options, value, onChange }: SegmentedProps<Value>) {
  const name = useId();
  return (
    <fieldset class="segmented">
      <legend class="hidden">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
          <span>{option.text}</span>
        </label>
      ))}
    </fieldset>
  );
}
