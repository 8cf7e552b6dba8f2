import { Field } from "./field.tsx";

/** In seconds. */
const OVERLAPS = [
  [0, "It ends at once"],
  [3_600, "1 hour"],
  [86_400, "1 day"],
  [604_800, "7 days"],
  [2_592_000, "30 days"],
] as const;

type OverlapFieldProps = {
  /** In seconds. */
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** A secret before the present one still works. */
  readonly hasPrevious: boolean;
};

/** How long the present secret works after a rotation. */
export function OverlapField({ value, onChange, hasPrevious }: OverlapFieldProps) {
  return (
    <Field label="The present secret works for" {...(hasPrevious && { hint: "The secret before it ends at once." })}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {OVERLAPS.map(([seconds, text]) => (
            <option key={seconds} value={seconds}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
