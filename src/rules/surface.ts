import { type DescService, getOption } from "@bufbuild/protobuf";
import { Surface as SurfaceNumber, surface as surfaceOption } from "../../gen/vx/options/v1/options_pb.js";

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
