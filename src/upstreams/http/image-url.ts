import type { Image } from "../../domain/prompt.ts";
import { RawJson } from "./request-body.ts";

/** The URL of an image; for bytes, a data URL. It needs no escapes, because the base64 of images is checked. */
export function urlOf(image: Image): string | RawJson {
  return image.kind === "url" ? image.url : new RawJson(`"data:${image.mediaType};base64,${image.base64}"`);
}
