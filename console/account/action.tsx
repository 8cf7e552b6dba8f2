import { PermittedButton, type PermittedButtonProps } from "../shared/permitted-button.tsx";
import type { PageMethod, Viewer } from "./viewer.ts";

type ActionProps = Omit<PermittedButtonProps, "refusal"> & {
  readonly viewer: Viewer;
  /** The method that the action calls. */
  readonly method: PageMethod;
};

/** A button that the role of the member may not permit. */
export function Action({ viewer, method, ...button }: ActionProps) {
  return <PermittedButton {...button} refusal={viewer.refusalOf(method)} />;
}
