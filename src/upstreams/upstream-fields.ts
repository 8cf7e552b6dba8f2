import type { JsonObject } from "../domain/json.ts";
import type { ModelTraits } from "../domain/model.ts";
import type { Format, Prompt } from "../domain/prompt.ts";
import { listedFields } from "../domain/prompt-texts.ts";

/** The fields that an upstream of the format gets unchanged: the request has the same format, and the model lists them. */
export function extraFieldsOf({ options, traits }: Prompt, format: Format): JsonObject | undefined {
  const { extraFields } = options;
  if (extraFields?.format !== format || traits.extraFields.length === 0) return undefined;
  return listedFields(extraFields.fields, traits.extraFields);
}

/** Whether the model lists a field that the format of its upstreams does not have. */
export function isExtraField({ extraFields }: ModelTraits, name: string): boolean {
  return extraFields.includes(name);
}
