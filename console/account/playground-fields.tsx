import type { Model } from "../../gen/vx/v1/model_pb.js";
import { capitalized } from "../shared/capitalized.ts";
import { Field } from "../shared/field.tsx";
import { moneyText } from "../shared/money.tsx";
import { TextField } from "../shared/text-field.tsx";
import type { PlaygroundCall } from "./call-texts.ts";

/** What a person entered: texts of fields. */
export type PlaygroundForm = {
  readonly model: string;
  readonly maxTokens: string;
  readonly temperature: string;
  /** Empty: the default of the model. */
  readonly effort: string;
};

const EFFORTS = ["none", "minimal", "low", "medium", "high"];

type PlaygroundFieldsProps = {
  readonly models: readonly Model[];
  readonly form: PlaygroundForm;
  readonly onChange: (part: Partial<PlaygroundForm>) => void;
};

/** The model and the parameters that it supports. */
export function PlaygroundFields({ models, form, onChange }: PlaygroundFieldsProps) {
  const model = models.find(({ id }) => id === form.model);
  return (
    <div class="filters">
      <Field label="Model" hint={model ? priceText(model) : ""}>
        {(control) => (
          <select {...control} value={form.model} onChange={(event) => onChange({ model: event.currentTarget.value })}>
            {models.map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        )}
      </Field>
      <TextField
        label="Maximum of output tokens"
        hint="Empty: the default of the model."
        value={form.maxTokens}
        maxLength={5}
        inputMode="numeric"
        onChange={(maxTokens) => onChange({ maxTokens })}
      />
      <TextField
        label="Temperature"
        hint="Empty: the default of the model."
        error={isTemperature(form.temperature) ? undefined : "From 0 to 2, such as 0.7."}
        value={form.temperature}
        maxLength={6}
        inputMode="decimal"
        onChange={(temperature) => onChange({ temperature })}
      />
      {supports(model, "reasoning") && (
        <Field label="Reasoning effort">
          {(control) => (
            <select {...control} value={form.effort} onChange={(event) => onChange({ effort: event.currentTarget.value })}>
              <option value="">Default of the model</option>
              {EFFORTS.map((effort) => (
                <option key={effort} value={effort}>
                  {capitalized(effort)}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
    </div>
  );
}

export function supports(model: Model | undefined, capability: "images" | "reasoning"): boolean {
  return model?.capabilities.includes(capability) === true;
}

/** Empty is one, too. */
export function isTemperature(text: string): boolean {
  const value = Number(text);
  return value >= 0 && value <= 2;
}

/** The parameters of a call, without those that its model does not support. */
export function parametersOf(
  { maxTokens, temperature, effort }: PlaygroundForm,
  model: Model | undefined,
): Pick<PlaygroundCall, "maxTokens" | "temperature" | "reasoningEffort"> {
  return {
    ...(/^[1-9]\d{0,4}$/.test(maxTokens) && { maxTokens: Number(maxTokens) }),
    ...(temperature.trim() !== "" && isTemperature(temperature) && { temperature: Number(temperature) }),
    ...(effort !== "" && supports(model, "reasoning") && { reasoningEffort: effort }),
  };
}

function priceText({ prices }: Model): string {
  return `${moneyText(prices?.input ?? 0n)} in, ${moneyText(prices?.output ?? 0n)} out, per million tokens`;
}
