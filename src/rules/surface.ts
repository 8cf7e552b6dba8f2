import { type DescService, getOption } from "@bufbuild/protobuf";
import {
  base_path as basePathOption,
  rest_only as restOnlyOption,
  Surface as SurfaceNumber,
  surface as surfaceOption,
} from "../../gen/vx/options/v1/options_pb.js";

/** The API whose conventions a service follows over REST. */
export type Surface = "native" | "openai" | "openai-responses" | "anthropic";

const SURFACES: Readonly<Record<SurfaceNumber, Surface>> = {
  [SurfaceNumber.UNSPECIFIED]: "native",
  [SurfaceNumber.OPENAI]: "openai",
  [SurfaceNumber.OPENAI_RESPONSES]: "openai-responses",
  [SurfaceNumber.ANTHROPIC]: "anthropic",
};

export function surfaceOf(service: DescService): Surface {
  return SURFACES[getOption(service, surfaceOption)];
}

/** Whether a service does not exist over gRPC, gRPC-Web and Connect. */
export function isRestOnly(service: DescService): boolean {
  return getOption(service, restOnlyOption);
}

/** The start of the second addresses of a service; empty without them. */
export function basePathOf(service: DescService): string {
  return getOption(service, basePathOption);
}
