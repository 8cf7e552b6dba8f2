import { Field } from "./field.tsx";

/** What each role of members may do. */
export const MEMBER_ROLES = {
  viewer: "Reads everything except secrets.",
  developer: "Reads everything; manages keys and webhooks, and uses the playground.",
  billing: "Reads everything; manages payments, limits and the low balance.",
  owner: "May do everything, also manage members.",
} as const;

type RoleFieldProps = { readonly value: string; readonly onChange: (role: string) => void };

export function RoleField({ value, onChange }: RoleFieldProps) {
  return (
    <Field label="Role" hint={MEMBER_ROLES[value as keyof typeof MEMBER_ROLES]}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {Object.keys(MEMBER_ROLES).map((role) => (
            <option key={role} value={role}>
              {role}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
