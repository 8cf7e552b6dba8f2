import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { collects_unknown_fields, omit_unset } from "../../gen/vx/options/v1/options_pb.js";

/** The options of the .proto that change the JSON form of a message. */

/** Whether the unset fields of a message are left out, in place of null. */
export function omitsUnset(desc: DescMessage): boolean {
  return getOption(desc, omit_unset);
}

/** Reading an option takes as long as the rest of a validation, so each message is searched once. */
const collectingFields = new WeakMap<DescMessage, DescField | undefined>();

/** The field that gets the members of a body which the message does not have. */
export function fieldForUnknown(desc: DescMessage): DescField | undefined {
  if (!collectingFields.has(desc)) {
    const collecting = desc.fields.find((field) => getOption(field, collects_unknown_fields));
    collectingFields.set(desc, collecting);
  }
  return collectingFields.get(desc);
}
