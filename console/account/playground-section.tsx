import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useEffect, useRef, useState } from "preact/hooks";
import { type GenerateDone, GenerateService } from "../../gen/vx/v1/generate_pb.js";
import type { Model } from "../../gen/vx/v1/model_pb.js";
import { Button } from "../shared/button.tsx";
import { CopyButton } from "../shared/copy-button.tsx";
import { ProblemNotice } from "../shared/dialog.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { moneyText, numberText } from "../shared/money.tsx";
import { type Problem, problemOf } from "../shared/problem.ts";
import { Segmented } from "../shared/segmented.tsx";
import { createSession } from "../shared/session.ts";
import { EmptyState, ErrorState, Skeleton } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useQuery } from "../shared/use-query.ts";
import { Action } from "./action.tsx";
import { callTexts, environmentText, type PlaygroundCall, type PlaygroundMessage } from "./call-texts.ts";
import { ADD_CREDIT } from "./payments-section.tsx";
import { isTemperature, PlaygroundFields, type PlaygroundForm, parametersOf, supports } from "./playground-fields.tsx";
import { ImageField, type ShownImage, Thumbnails } from "./playground-images.tsx";
import type { Viewer } from "./viewer.ts";

type Message = PlaygroundMessage & {
  readonly images?: readonly ShownImage[];
  /** What a model thought before it replied. It is not sent again. */
  readonly reasoning?: string;
};

type Reply = {
  readonly text: string;
  readonly reasoning: string;
  /** Exact, once the reply is complete. */
  readonly done: Pick<GenerateDone, "usage" | "finishReason"> | undefined;
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
      <p>Calls are charged to the account. They use a key that the page creates, which expires after an hour.</p>
      {problem && <ErrorState problem={problem} onRetry={reload} />}
      {data === undefined && !problem && <Skeleton width="100%" height="20rem" />}
      {data?.length === 0 && <EmptyState title="No models" />}
      {data && data.length > 0 && <Playground viewer={viewer} models={data} />}
    </>
  );
}

type Form = PlaygroundForm & {
  readonly system: string;
  readonly text: string;
  readonly images: readonly ShownImage[];
};

const EMPTY_FORM = { system: "", text: "", maxTokens: "", temperature: "", effort: "", images: [] };

type PlaygroundProps = { readonly viewer: Viewer; readonly models: readonly Model[] };

function Playground({ viewer, models }: PlaygroundProps) {
  const [form, setForm] = useState<Form>({ ...EMPTY_FORM, model: models[0]?.id ?? "" });
  const change = (part: Partial<Form>) => setForm((before) => ({ ...before, ...part }));
  const [history, setHistory] = useState<readonly Message[]>([]);
  const [reply, setReply] = useState<Reply>();
  const [problem, setProblem] = useState<Problem>();
  const running = useRef<AbortController>(undefined);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => () => running.current?.abort(), []);
  const model = models.find(({ id }) => id === form.model);
  const supportsImages = supports(model, "images");
  const next: Message = { role: "user", content: form.text, images: supportsImages ? form.images : [] };
  const call: PlaygroundCall = {
    model: form.model,
    messages: [
      ...(form.system.trim() === "" ? [] : [{ role: "system", content: form.system } as const]),
      ...(form.text.trim() === "" ? lastCall(history) : [...history, next]).map((message) =>
        supportsImages ? message : { ...message, images: [] },
      ),
    ],
    ...parametersOf(form, model),
  };
  const run = async () => {
    const controller = new AbortController();
    running.current = controller;
    setBusy(true);
    setProblem(undefined);
    setReply(undefined);
    setHistory([...history, next]);
    change({ text: "", images: [] });
    let text = "";
    let reasoning = "";
    try {
      for await (const { event } of await stream(viewer, call, controller.signal)) {
        if (event.case === "delta") {
          text += event.value.content;
          reasoning += event.value.reasoning?.text ?? "";
        }
        setReply({ text, reasoning, done: event.case === "done" ? event.value : undefined });
      }
    } catch (error) {
      if (!controller.signal.aborted) setProblem(problemOf(error));
    }
    if (text !== "") setHistory((before) => [...before, { role: "assistant", content: text, reasoning }]);
    else {
      setHistory(history);
      change({ text: form.text, images: form.images });
    }
    setBusy(false);
  };
  const canSend = form.text.trim() !== "" && isTemperature(form.temperature);
  const submit = (event: Event) => {
    event.preventDefault();
    if (canSend && !isBusy) void run();
  };
  const clear = () => {
    setHistory([]);
    setReply(undefined);
    setProblem(undefined);
  };
  return (
    <>
      <form class="card usage" onSubmit={submit}>
        <PlaygroundFields models={models} form={form} onChange={change} />
        <TextField
          label="Instructions"
          value={form.system}
          rows={2}
          maxLength={MAX_LENGTH}
          onChange={(system) => change({ system })}
        />
        {history.length > 0 && <Conversation history={history} reply={reply} isBusy={isBusy} />}
        {reply && model && <Cost model={model} call={call} reply={reply} isBusy={isBusy} />}
        {problem && <ProblemNotice problem={problem} />}
        {problem?.reason === "INSUFFICIENT_BALANCE" && viewer.canPay && viewer.canBill && (
          <div class="page-actions">
            <a class="button button-primary" href={ADD_CREDIT}>
              Add credit
            </a>
          </div>
        )}
        <TextField label="Message" value={form.text} rows={3} maxLength={MAX_LENGTH} onChange={(text) => change({ text })} />
        {supportsImages && (
          <ImageField
            images={form.images}
            sent={history.flatMap(({ images: sent = [] }) => sent)}
            onChange={(chosen) => change({ images: chosen })}
          />
        )}
        <div class="page-actions">
          {isBusy ? (
            <Button onClick={() => running.current?.abort()}>Stop</Button>
          ) : (
            <Action viewer={viewer} method="createPlaygroundKey" tone="primary" disabled={!canSend} onClick={() => void run()}>
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

type ConversationProps = {
  readonly history: readonly Message[];
  readonly reply: Reply | undefined;
  readonly isBusy: boolean;
};

function Conversation({ history, reply, isBusy }: ConversationProps) {
  const growing: Message = {
    role: "assistant",
    content: reply?.text ?? "",
    reasoning: reply?.reasoning ?? "",
  };
  return (
    <ol class="plain-list conversation" aria-busy={isBusy} aria-label="Conversation">
      {[...history, ...(isBusy ? [growing] : [])].map(({ role, content, images = [], reasoning = "" }, index) => (
        // Messages are only added.
        <li key={index} class={`message message-${role}`}>
          <span class="muted small">{role === "user" ? "You" : "Model"}</span>
          {reasoning !== "" && (
            <details class="small">
              <summary>Reasoning</summary>
              <div class="wrap lines muted">{reasoning}</div>
            </details>
          )}
          <div class="wrap lines">{content}</div>
          {images.length > 0 && <Thumbnails images={images} />}
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
  if (reply.done?.usage) {
    const { cost, inputTokens, outputTokens } = reply.done.usage;
    return (
      <p class="small" role="status">
        Cost: <strong>{cost}</strong> for {numberText(inputTokens)} input and {numberText(outputTokens)} output tokens.
        {reply.done.finishReason === "length" && " The reply ended at the maximum of output tokens."}
      </p>
    );
  }
  if (!isBusy) return <p class="muted small">Stopped. The ledger has the exact cost.</p>;
  const { input = 0n, output = 0n, image = 0n, request = 0n } = model.prices ?? {};
  const sumOf = (lengthOf: (message: PlaygroundMessage) => number) =>
    BigInt(call.messages.reduce((sum, message) => sum + lengthOf(message), 0));
  const texts = sumOf(({ content }) => content.length) * input + BigInt(reply.text.length + reply.reasoning.length) * output;
  const estimate = texts / BigInt(CHARACTERS_PER_TOKEN * 1_000_000) + sumOf(({ images = [] }) => images.length) * image + request;
  return <p class="muted small">Cost so far: about {moneyText(estimate)}</p>;
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
        Set the address and a <a href="#/keys">key of your own</a> first: <code>{environmentText(location.origin)}</code>
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

async function stream(viewer: Viewer, { messages, ...call }: PlaygroundCall, signal: AbortSignal) {
  let key = KEYS.get(viewer.id);
  if (key === undefined || key.until < Date.now() + SPARE_MS) {
    const { secret, apiKey } = await viewer.pageService.createPlaygroundKey({});
    key = { secret, until: apiKey?.expiresAt ? timestampDate(apiKey.expiresAt).getTime() : 0 };
    KEYS.set(viewer.id, key);
  }
  // A key that was revoked must not end the session of the person.
  const forget = () => void KEYS.delete(viewer.id);
  const client = createClient(GenerateService, createSession(key.secret, forget));
  const request = { ...call, messages: messages.map(messageOf) };
  return client.streamGenerate(request, { signal, timeoutMs: STREAM_TIMEOUT_MS });
}

function messageOf({ role, content, images = [] }: PlaygroundMessage) {
  if (images.length === 0) return { role, content };
  return { role, parts: [{ text: content }, ...images.map(({ bytes }) => ({ image: { data: bytes } }))] };
}
