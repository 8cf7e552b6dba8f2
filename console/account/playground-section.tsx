import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useEffect, useRef, useState } from "preact/hooks";
import { GenerateService, type Usage } from "../../gen/vx/v1/generate_pb.js";
import type { Model } from "../../gen/vx/v1/model_pb.js";
import { Button } from "../shared/button.tsx";
import { CopyButton } from "../shared/copy-button.tsx";
import { ProblemNotice } from "../shared/dialog.tsx";
import { Field } from "../shared/field.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { moneyText, numberText } from "../shared/money.tsx";
import { type Problem, problemOf } from "../shared/problem.ts";
import { Segmented } from "../shared/segmented.tsx";
import { createSession } from "../shared/session.ts";
import { EmptyState, ErrorState, Skeleton } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useQuery } from "../shared/use-query.ts";
import { Action } from "./action.tsx";
import { callTexts, environmentText, type PlaygroundCall } from "./call-texts.ts";
import { ADD_CREDIT } from "./payments-section.tsx";
import type { Viewer } from "./viewer.ts";

type Message = PlaygroundCall["messages"][number];

type Reply = {
  readonly text: string;
  /** Exact, once the reply is complete. */
  readonly usage: Usage | undefined;
};

const STREAM_TIMEOUT_MS = 600_000;
const MAX_LENGTH = 100_000;
/** The usual length of a token of English text: only for the cost that is shown while a reply grows. */
const CHARACTERS_PER_TOKEN = 4;

/** Tries the models of the account, at its cost. */
export function PlaygroundSection({ viewer }: { readonly viewer: Viewer }) {
  const { data, problem, reload } = useQuery(
    async (signal) => {
      const { data: models } = await viewer.modelService.listModels({ pageSize: 1_000 }, { signal });
      return models.filter(({ capabilities }) => !capabilities.includes("embeddings"));
    },
    [viewer.id],
  );
  return (
    <>
      <PageHeader title="Playground" />
      <p>
        Calls are charged to the account. They use a key that the page creates, which expires after an hour.
      </p>
      {problem && <ErrorState problem={problem} onRetry={reload} />}
      {data === undefined && !problem && <Skeleton width="100%" height="20rem" />}
      {data?.length === 0 && <EmptyState title="No models" />}
      {data && data.length > 0 && <Playground viewer={viewer} models={data} />}
    </>
  );
}

type PlaygroundProps = { readonly viewer: Viewer; readonly models: readonly Model[] };

function Playground({ viewer, models }: PlaygroundProps) {
  const [form, setForm] = useState({ model: models[0]?.id ?? "", system: "", text: "", maxTokens: "" });
  const change = (part: Partial<typeof form>) => setForm((before) => ({ ...before, ...part }));
  const [history, setHistory] = useState<readonly Message[]>([]);
  const [reply, setReply] = useState<Reply>();
  const [problem, setProblem] = useState<Problem>();
  const running = useRef<AbortController>(undefined);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => () => running.current?.abort(), []);
  const call: PlaygroundCall = {
    model: form.model,
    messages: [
      ...(form.system.trim() === "" ? [] : [{ role: "system", content: form.system } as const]),
      ...(form.text.trim() === ""
        ? lastCall(history)
        : [...history, { role: "user", content: form.text } as const]),
    ],
    maxTokens: /^[1-9]\d{0,4}$/.test(form.maxTokens) ? Number(form.maxTokens) : undefined,
  };
  const run = async () => {
    const controller = new AbortController();
    running.current = controller;
    setBusy(true);
    setProblem(undefined);
    setHistory([...history, { role: "user", content: form.text }]);
    change({ text: "" });
    let text = "";
    try {
      for await (const { event } of await stream(viewer, call, controller.signal)) {
        if (event.case === "delta") text += event.value.content;
        setReply({ text, usage: event.case === "done" ? event.value.usage : undefined });
      }
    } catch (error) {
      if (!controller.signal.aborted) setProblem(problemOf(error));
    }
    if (text !== "") setHistory((before) => [...before, { role: "assistant", content: text }]);
    else {
      setHistory(history);
      change({ text: form.text });
    }
    setBusy(false);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (form.text.trim() !== "" && !isBusy) void run();
  };
  const clear = () => {
    setHistory([]);
    setReply(undefined);
    setProblem(undefined);
  };
  const model = models.find(({ id }) => id === form.model);
  return (
    <>
      <form class="card usage" onSubmit={submit}>
        <div class="filters">
          <Field label="Model" hint={model ? priceText(model) : ""}>
            {(control) => (
              <select
                {...control}
                value={form.model}
                onChange={(event) => change({ model: event.currentTarget.value })}
              >
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
            onChange={(maxTokens) => change({ maxTokens })}
          />
        </div>
        <TextField
          label="Instructions"
          value={form.system}
          rows={2}
          maxLength={MAX_LENGTH}
          onChange={(system) => change({ system })}
        />
        {history.length > 0 && (
          <Conversation history={history} growing={isBusy ? (reply?.text ?? "") : undefined} />
        )}
        {reply && model && <Cost model={model} call={call} reply={reply} isBusy={isBusy} />}
        {problem && <ProblemNotice problem={problem} />}
        {problem?.reason === "INSUFFICIENT_BALANCE" && viewer.canPay && viewer.canBill && (
          <div class="page-actions">
            <a class="button button-primary" href={ADD_CREDIT}>
              Add credit
            </a>
          </div>
        )}
        <TextField
          label="Message"
          value={form.text}
          rows={3}
          maxLength={MAX_LENGTH}
          onChange={(text) => change({ text })}
        />
        <div class="page-actions">
          {isBusy ? (
            <Button onClick={() => running.current?.abort()}>Stop</Button>
          ) : (
            <Action
              viewer={viewer}
              method="createPlaygroundKey"
              tone="primary"
              disabled={form.text.trim() === ""}
              onClick={() => void run()}
            >
              Send
            </Action>
          )}
          <Button onClick={clear} disabled={isBusy || history.length === 0}>
            Clear
          </Button>
        </div>
      </form>
      <CallTexts call={call} />
    </>
  );
}

/** Without the reply. */
function lastCall(history: readonly Message[]): readonly Message[] {
  return history.at(-1)?.role === "assistant" ? history.slice(0, -1) : history;
}

type ConversationProps = { readonly history: readonly Message[]; readonly growing: string | undefined };

function Conversation({ history, growing }: ConversationProps) {
  const shown =
    growing === undefined ? history : [...history, { role: "assistant", content: growing } as const];
  return (
    <ol class="plain-list conversation" aria-busy={growing !== undefined} aria-label="Conversation">
      {shown.map(({ role, content }, index) => (
        // Messages are only added.
        <li key={index} class={`message message-${role}`}>
          <span class="muted small">{role === "user" ? "You" : "Model"}</span>
          <div class="wrap lines">{content}</div>
        </li>
      ))}
    </ol>
  );
}

type CostProps = {
  readonly model: Model;
  readonly call: PlaygroundCall;
  readonly reply: Reply;
  readonly isBusy: boolean;
};

/** Estimated from the length of the texts while the reply grows, then exact. */
function Cost({ model, call, reply, isBusy }: CostProps) {
  if (reply.usage) {
    const { cost, inputTokens, outputTokens } = reply.usage;
    return (
      <p class="small" role="status">
        Cost: <strong>{cost}</strong> for {numberText(inputTokens)} input and {numberText(outputTokens)}{" "}
        output tokens.
      </p>
    );
  }
  if (!isBusy) return <p class="muted small">Stopped. The ledger has the exact cost.</p>;
  const input = call.messages.reduce((sum, { content }) => sum + content.length, 0);
  const estimate =
    (BigInt(input) * (model.prices?.input ?? 0n) + BigInt(reply.text.length) * (model.prices?.output ?? 0n)) /
      BigInt(CHARACTERS_PER_TOKEN * 1_000_000) +
    (model.prices?.request ?? 0n);
  return <p class="muted small">Cost so far: about {moneyText(estimate)}</p>;
}

function priceText({ prices }: Model): string {
  return `${moneyText(prices?.input ?? 0n)} in, ${moneyText(prices?.output ?? 0n)} out, per million tokens`;
}

/** The same call for programs. */
function CallTexts({ call }: { readonly call: PlaygroundCall }) {
  const texts = callTexts(call, location.origin);
  const [language, setLanguage] = useState("curl");
  const text = texts[language] ?? "";
  return (
    <section class="card usage" aria-labelledby="code">
      <div class="usage-header">
        <h2 id="code">The same call as code</h2>
        <Segmented
          label="Language"
          options={Object.keys(texts).map((name) => ({ value: name, text: name }))}
          value={language}
          onChange={setLanguage}
        />
      </div>
      <p class="small">
        Set the address and a <a href="#/keys">key of your own</a> first:{" "}
        <code>{environmentText(location.origin)}</code>
      </p>
      <code class="shown-command">{text}</code>
      <div class="page-actions">
        <CopyButton text={text} what="code" />
      </div>
    </section>
  );
}

type PlaygroundKey = { readonly secret: string; readonly until: number };

/** In memory, by account: a visit to another section must not create another key. */
const KEYS = new Map<string, PlaygroundKey>();
/** The rest of the life of a key in which it is no longer used. */
const SPARE_MS = 60_000;

async function stream(viewer: Viewer, { model, messages, maxTokens }: PlaygroundCall, signal: AbortSignal) {
  let key = KEYS.get(viewer.id);
  if (key === undefined || key.until < Date.now() + SPARE_MS) {
    const { secret, apiKey } = await viewer.pageService.createPlaygroundKey({});
    key = { secret, until: apiKey?.expiresAt ? timestampDate(apiKey.expiresAt).getTime() : 0 };
    KEYS.set(viewer.id, key);
  }
  // A key that was revoked must not end the session of the person.
  const forget = () => void KEYS.delete(viewer.id);
  const client = createClient(GenerateService, createSession(key.secret, forget));
  const request = { model, messages: [...messages], ...(maxTokens !== undefined && { maxTokens }) };
  return client.streamGenerate(request, { signal, timeoutMs: STREAM_TIMEOUT_MS });
}
