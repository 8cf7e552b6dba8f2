import { Field } from "./field.tsx";
import { changeParams } from "./use-route.ts";

/** The values of filters by their names in the URL; empty if not set. Days are in the zone of the viewer, both included. */
export type FilterValues<Name extends string> = Readonly<Record<Name, string>>;

export function filterValuesOf<Name extends string>(params: URLSearchParams, names: readonly Name[]): FilterValues<Name> {
  return Object.fromEntries(names.map((name) => [name, params.get(name) ?? ""])) as FilterValues<Name>;
}

type FilterProps = {
  readonly label: string;
  /** The section of the URL whose list is filtered. */
  readonly section: string;
  /** The name in the URL. */
  readonly name: string;
  readonly value: string;
};

function change({ section, name }: FilterProps) {
  return (event: Event & { readonly currentTarget: { value: string } }) =>
    changeParams(section, { [name]: event.currentTarget.value.trim() });
}

type SelectFilterProps = FilterProps & {
  readonly options: readonly (readonly [value: string, text: string])[];
};

/** A choice that applies at once. The value of the address is a choice too, although it may be no longer in use. */
export function SelectFilter({ options, ...props }: SelectFilterProps) {
  const { value } = props;
  const isKnown = options.some(([one]) => one === value);
  const shown = isKnown ? options : [...options, [value, value] as const];
  return (
    <Field label={props.label}>
      {(control) => (
        <select {...control} value={value} onChange={change(props)}>
          {shown.map(([one, text]) => (
            <option key={one} value={one}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** The first and the last day. */
export function DayFilters({ section, from, to }: Pick<FilterProps, "section"> & FilterValues<"from" | "to">) {
  const days = [
    { label: "From", section, name: "from", value: from, max: to },
    { label: "Until", section, name: "to", value: to, min: from },
  ];
  return (
    <>
      {days.map(({ min, max, ...props }) => (
        <Field key={props.name} label={props.label}>
          {(control) => <input {...control} type="date" value={props.value} min={min} max={max} onChange={change(props)} />}
        </Field>
      ))}
    </>
  );
}
