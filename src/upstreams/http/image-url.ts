import type { Image } from "../../domain/prompt.ts";
import { Base64Json } from "./request-body.ts";

/** The URL of an image; for bytes, a data URL. */
export function urlOf(image: Image): string | Base64Json {
  return image.kind === "url" ? image.url : new Base64Json(`data:${image.mediaType};base64,`, image.base64);
}
