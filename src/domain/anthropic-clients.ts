/** A client of Anthropic's API, and how it is set to use this server. */
export type AnthropicClient = {
  readonly id: string;
  readonly name: string;
  readonly language: "typescript" | "python" | "shell";
  /** Reads the key from the variable VX_KEY. */
  readonly code: string;
};

type ListedModel = {
  readonly id: string;
  readonly contextWindow: number;
  readonly capabilities: readonly string[];
};

/**
 * Examples with the model, and for agents, which send long prompts, with the largest of the models with tools. The home page, the customer page and docs/clients.md show these; `npm run test:extra -- sdks agents python` runs
 * each.
 */
export function anthropicClients(url: string, model: string, models: readonly ListedModel[]): readonly AnthropicClient[] {
  const withTools = models.filter(({ capabilities }) => capabilities.includes("tools"));
  const [largest] = withTools.toSorted((one, other) => other.contextWindow - one.contextWindow);
  const agentModel = largest?.id ?? model;
  const base = `${url}/anthropic`;
  return [
    {
      id: "anthropic-node",
      name: "Anthropic SDK",
      language: "typescript",
      code: `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: "${base}",
  apiKey: process.env.VX_KEY,
});
const reply = await client.messages.create({
  model: "${model}",
  max_tokens: 200,
  messages: [
    { role: "user", content: "Hello" },
  ],
});
for (const block of reply.content)
  if (block.type === "text") console.log(block.text);`,
    },
    {
      id: "anthropic-python",
      name: "Anthropic SDK",
      language: "python",
      code: `import os
from anthropic import Anthropic

client = Anthropic(
    base_url="${base}",
    api_key=os.environ["VX_KEY"],
)
reply = client.messages.create(
    model="${model}",
    max_tokens=200,
    messages=[
        {"role": "user", "content": "Hello"},
    ],
)
print(reply.content[0].text)`,
    },
    {
      id: "claude-code",
      name: "Claude Code",
      language: "shell",
      code: `export ANTHROPIC_BASE_URL="${base}"
export ANTHROPIC_API_KEY="$VX_KEY"
export ANTHROPIC_MODEL="${agentModel}"
export ANTHROPIC_SMALL_FAST_MODEL="${agentModel}"
claude`,
    },
    {
      id: "langchain",
      name: "LangChain ChatAnthropic",
      language: "python",
      code: `import os
from langchain_anthropic import ChatAnthropic

model = ChatAnthropic(
    model="${model}",
    base_url="${base}",
    api_key=os.environ["VX_KEY"],
)
print(model.invoke("Hello").text)`,
    },
    {
      id: "ai-sdk",
      name: "AI SDK",
      language: "typescript",
      code: `import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText } from "ai";

const anthropic = createAnthropic({
  baseURL: "${base}/v1",
  apiKey: process.env.VX_KEY,
});
const { text } = await generateText({
  model: anthropic("${model}"),
  prompt: "Hello",
});
console.log(text);`,
    },
    {
      id: "litellm",
      name: "LiteLLM anthropic/",
      language: "python",
      code: `import os
import litellm

reply = litellm.completion(
    model="anthropic/${model}",
    api_base="${base}",
    api_key=os.environ["VX_KEY"],
    messages=[
        {"role": "user", "content": "Hello"},
    ],
)
print(reply.choices[0].message.content)`,
    },
    {
      id: "strands",
      name: "Strands Agents",
      language: "python",
      code: `import os
from strands import Agent
from strands.models.anthropic import AnthropicModel

model = AnthropicModel(
    client_args={
        "base_url": "${base}",
        "api_key": os.environ["VX_KEY"],
    },
    model_id="${model}",
    max_tokens=200,
)
Agent(model=model)("Hello")`,
    },
  ];
}
