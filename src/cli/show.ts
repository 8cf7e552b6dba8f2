import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { JsonOption } from "./command.ts";
import { printOut } from "./output.ts";
import { jsonLine } from "./print.ts";

/** Prints the response as JSON or as a table. Returns false if the reader closed the pipe. */
export async function show<Desc extends DescMessage>(
  { json }: JsonOption,
  desc: Desc,
  response: MessageShape<Desc>,
  forPeople: () => string,
): Promise<boolean> {
  return await printOut(json ? jsonLine(desc, response) : forPeople());
}
