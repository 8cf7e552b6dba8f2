import { ListPricesResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { withAdmin } from "./client.ts";
import { priceVersionColumns } from "./columns.ts";
import { type Define, withExamples } from "./command.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";

export const define: Define = (command) => {
  command.argument("<model>", "the id or an alias of the model");
  command.option("--json", "print the response message as JSON");
  addListOptions(withExamples(command, ["vx prices acme-large", "vx prices acme-large --json"])).action(list);
};

async function list(model: string, options: ListOptions): Promise<void> {
  await withAdmin((admin) =>
    printList(options, {
      desc: ListPricesResponseSchema,
      fetch: (page) => admin.listPrices({ model, ...page }),
      rows: (page) => page.versions,
      columns: priceVersionColumns,
      none: "The model has no prices.",
    }),
  );
}
