import { modelColumns } from "./columns.ts";
import { callCommand, type Define, withExamples } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";

export const define: Define = (group) => {
  withExamples(group, ["vx models list"]);
  addListOptions(
    callCommand(group, "list", "List the models with their prices and upstreams, sorted by id.", [
      "vx models list",
      "vx models list --json",
    ]),
  ).action(list);
};

async function list(options: ListOptions): Promise<void> {
  await callAndPrintList(options, "listModels", {
    request: {},
    rows: (page) => page.models,
    columns: modelColumns,
    none: "There are no models.",
  });
}
