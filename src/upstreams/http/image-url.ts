import type { Image } from "../../domain/prompt.ts";

/** The URL of an image; for bytes, a data URL. */
export function urlOf(image: Image): string {
  return image.kind === "url" ? image.url : `data:${image.mediaType};base64,${image.base64}`;
}
