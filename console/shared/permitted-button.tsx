import type { ComponentChildren } from "preact";
import { Button } from "./button.tsx";
import { useToast } from "./toast.tsx";

export type PermittedButtonProps = {
  /** Why the viewer may not use it; undefined if the viewer may. */
  readonly refusal: string | undefined;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
  readonly tone?: "primary" | "plain" | "danger";
  /** The name for screen readers, if the text alone does not say what the action changes. */
  readonly label?: string | undefined;
  readonly disabled?: boolean;
};

/** A button that the role of the viewer may not permit: it then stays reachable, and says why. */
export function PermittedButton({ refusal, onClick, children, label, ...button }: PermittedButtonProps) {
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
