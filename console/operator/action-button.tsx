import { PermittedButton, type PermittedButtonProps } from "../shared/permitted-button.tsx";
import { type AdminMethod, refusalOf, useSession } from "./operator-session.ts";

type ActionButtonProps = Omit<PermittedButtonProps, "refusal"> & {
  /** The method that the action calls. */
  readonly method: AdminMethod;
};

/** A button that the operator's role may not permit. */
export function ActionButton({ method, ...button }: ActionButtonProps) {
  return <PermittedButton {...button} refusal={refusalOf(useSession(), method)} />;
}
