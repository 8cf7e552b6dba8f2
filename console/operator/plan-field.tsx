import { Field } from "../shared/field.tsx";
import { useQuery } from "../shared/use-query.ts";
import { useApi } from "./operator-session.ts";

type PlanFieldProps = {
  readonly value: string;
  /** The label of the empty choice; without it, a plan must be chosen. */
  readonly none?: string;
  readonly hint?: string;
  readonly onChange: (plan: string) => void;
};

/** A choice between the plans of the service. */
export function PlanField({ value, none, hint, onChange }: PlanFieldProps) {
  const api = useApi();
  const { data } = useQuery(async (signal) => (await api.listPlans({}, { signal })).plans, []);
  const names = data?.map(({ name }) => name) ?? [];
  const shown = value === "" || names.includes(value) ? names : [value, ...names];
  return (
    <Field label="Plan" {...(hint !== undefined && { hint })}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {none !== undefined && <option value="">{none}</option>}
          {shown.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
