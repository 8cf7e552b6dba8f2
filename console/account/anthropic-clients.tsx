import { useState } from "preact/hooks";
import { anthropicClients } from "../../src/domain/anthropic-clients.ts";
import { CopyButton } from "../shared/copy-button.tsx";
import { Field } from "../shared/field.tsx";
import { useQuery } from "../shared/use-query.ts";
import { exampleOf } from "./first-key.tsx";
import type { Viewer } from "./viewer.ts";

const LANGUAGES = { typescript: "TypeScript", python: "Python", shell: "shell" } as const;

/** How to set the clients of Anthropic's API. Those of OpenAI's need only another address. */
export function AnthropicClients({ viewer }: { readonly viewer: Viewer }) {
  const { data: models } = useQuery(
    async (signal) => (await viewer.modelService.listModels({ pageSize: 100 }, { signal })).data,
    [viewer.id],
  );
  const [id, setId] = useState("anthropic-node");
  // The examples name a model.
  if (!models) return null;
  const clients = anthropicClients(location.origin, exampleOf(models), models);
  const code = clients.find((one) => one.id === id)?.code ?? "";
  return (
    <section class="card usage" aria-labelledby="anthropic-clients">
      <div>
        <h2 id="anthropic-clients">Clients of Anthropic's API</h2>
        <p class="small">
          Set the base URL <code>{location.origin}/anthropic</code> and a key of this account as the API key.
        </p>
      </div>
      <Field label="Client">
        {(control) => (
          <select {...control} value={id} onChange={(event) => setId(event.currentTarget.value)}>
            {clients.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name} ({LANGUAGES[one.language]})
              </option>
            ))}
          </select>
        )}
      </Field>
      <code class="shown-command">{code}</code>
      <div class="page-actions">
        <CopyButton text={code} what="code" />
      </div>
    </section>
  );
}
