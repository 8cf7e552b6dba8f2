import type { ComponentChildren } from "preact";
import { Button } from "../shared/button.tsx";
import { useToast } from "../shared/toast.tsx";
import { type AdminMethod, refusalOf, useSession } from "./operator-session.ts";

type ActionButtonProps = {
  /** The method that the action calls. */
  readonly method: AdminMethod;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
  readonly tone?: "primary" | "plain" | "danger";
  /** The name for screen readers, if the text alone does not say what the action changes. */
  readonly label?: string;
  readonly disabled?: boolean;
};

/** A button that the operator's role may not permit: it then stays reachable, and says why. */
export function ActionButton({ method, onClick, children, label, ...button }: ActionButtonProps) {
  const refusal = refusalOf(useSession(), method);
  const toast = useToast();
  return (
    <Button
      {...button}
      onClick={() => (refusal === undefined ? onClick() : toast(refusal))}
      aria-disabled={refusal === undefined ? undefined : true}
      aria-label={label}
      aria-description={refusal}
      title={refusal}
    >
      {children}
    </Button>
  );
}
