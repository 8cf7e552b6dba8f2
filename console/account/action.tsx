import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { PermittedButton, type PermittedButtonProps } from "../shared/permitted-button.tsx";
import type { MemberMethod, Viewer } from "./viewer.ts";

type ActionProps = Omit<PermittedButtonProps, "refusal"> & {
  readonly viewer: Viewer;
  /** The method that the action calls. */
  readonly method: MemberMethod;
  /** The key that the action changes. */
  readonly apiKey?: ApiKey | undefined;
};

/** A button that the role of the member may not permit. */
export function Action({ viewer, method, apiKey, ...button }: ActionProps) {
  const refusal = viewer.refusalOf(method) ?? (apiKey && viewer.refusalOfKey(apiKey));
  return <PermittedButton {...button} refusal={refusal} />;
}
