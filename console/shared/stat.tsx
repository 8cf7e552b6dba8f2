import type { ComponentChildren } from "preact";
import { Skeleton } from "./states.tsx";

type StatProps = {
  readonly label: string;
  /** Undefined while it is being loaded. */
  readonly value: Exclude<ComponentChildren, boolean>;
  readonly note?: ComponentChildren;
};

/** One figure. */
export function Stat({ label, value, note }: StatProps) {
  return (
    <div class="stat">
      <dt class="muted small">{label}</dt>
      <dd class="stat-value">{value ?? <Skeleton width="5rem" />}</dd>
      {note !== undefined && <dd class="muted small">{note}</dd>}
    </div>
  );
}

/** Figures beside each other. */
export function Stats({ children }: { readonly children: ComponentChildren }) {
  return <dl class="stats">{children}</dl>;
}
