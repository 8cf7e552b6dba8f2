import { ListModelsResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { withAdmin } from "./client.ts";
import { modelColumns } from "./columns.ts";
import { callCommand, type Define, withExamples } from "./command.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";

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
  await withAdmin((admin) =>
    printList(options, {
      desc: ListModelsResponseSchema,
      fetch: (page) => admin.listModels(page),
      rows: (page) => page.models,
      columns: modelColumns,
      none: "There are no models.",
    }),
  );
}
