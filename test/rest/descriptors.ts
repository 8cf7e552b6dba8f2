import {
  create,
  createFileRegistry,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
  MessageOptionsSchema,
  MethodOptionsSchema,
  ServiceOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { http } from "../../gen/google/api/annotations_pb.js";
import type { HttpRuleSchema } from "../../gen/google/api/http_pb.js";
import {
  collects_unknown_fields,
  omit_unset,
  Surface,
  selected_by,
  surface as surfaceOption,
} from "../../gen/vx/options/v1/options_pb.js";

/** Fields without numbers: "optional int64 size", "map<string,Item> items", "choice: bool a" (in a oneof). */
export type MessageSpecs = Record<string, readonly string[]>;

export type MethodSpec = {
  readonly input: string;
  readonly output: string;
  readonly streams?: boolean;
  readonly http?: MessageInitShape<typeof HttpRuleSchema>;
  readonly selectedBy?: string;
};

export type MessageOptions = {
  /** The message that leaves out its unset fields. */
  readonly omitsUnset?: string;
  /** The fields with this name collect unknown fields. */
  readonly collectsUnknown?: string;
};

export type TestFile = { message(name: string): DescMessage; method(name: string): DescMethod; readonly service: DescService };

const WELL_KNOWN: readonly DescFile[] = [
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
];

/** A file of package test.v1 with the enum Color, the messages and, with methods, the service TestService. */
export function testFile(
  messages: MessageSpecs,
  methods: Record<string, MethodSpec> = {},
  surface = Surface.UNSPECIFIED,
  options: MessageOptions = {},
): TestFile {
  const names = new Set(Object.keys(messages));
  const file = create(FileDescriptorProtoSchema, {
    name: "test/v1/test.proto",
    package: "test.v1",
    syntax: "proto3",
    dependency: WELL_KNOWN.map(({ proto }) => proto.name),
    enumType: [
      { name: "Color", value: ["COLOR_UNSPECIFIED", "COLOR_RED", "COLOR_BLUE"].map((name, number) => ({ name, number })) },
    ],
    messageType: Object.entries(messages).map(([name, fields]) => toMessage(name, fields, names)),
    service: [
      {
        name: "TestService",
        options: serviceOptions(surface),
        method: Object.entries(methods).map(([name, spec]) => ({
          name,
          inputType: typeName(spec.input, names),
          outputType: typeName(spec.output, names),
          serverStreaming: spec.streams ?? false,
          options: toOptions(spec),
        })),
      },
    ],
  });
  for (const message of file.messageType) setMessageOptions(message, options);
  const registry = createFileRegistry(file, (name) => WELL_KNOWN.find(({ proto }) => proto.name === name)?.proto);
  const service = existing(registry.getService("test.v1.TestService"));
  return {
    message: (name) => existing(registry.getMessage(`test.v1.${name}`)),
    method: (name) => existing(service.methods.find((method) => method.name === name)),
    service,
  };
}

function setMessageOptions(message: DescriptorProto, { omitsUnset, collectsUnknown }: MessageOptions): void {
  if (message.name === omitsUnset) {
    message.options = create(MessageOptionsSchema);
    setExtension(message.options, omit_unset, true);
  }
  for (const field of message.field) {
    if (field.name !== collectsUnknown) continue;
    field.options = create(FieldOptionsSchema);
    setExtension(field.options, collects_unknown_fields, true);
  }
}

function serviceOptions(surface: Surface) {
  const options = create(ServiceOptionsSchema);
  setExtension(options, surfaceOption, surface);
  return options;
}

function toOptions({ http: rule, selectedBy }: MethodSpec) {
  const options = create(MethodOptionsSchema);
  if (rule) setExtension(options, http, rule as never);
  if (selectedBy !== undefined) setExtension(options, selected_by, selectedBy);
  return options;
}

function toMessage(name: string, specs: readonly string[], names: ReadonlySet<string>): DescriptorProto {
  const message = create(DescriptorProtoSchema, { name });
  const oneofOf = (oneof: string) => {
    const at = message.oneofDecl.findIndex((one) => one.name === oneof);
    return at >= 0 ? at : message.oneofDecl.push({ name: oneof } as never) - 1;
  };
  const { REPEATED, OPTIONAL } = FieldDescriptorProto_Label;
  const optional: { field: { oneofIndex?: number }; name: string }[] = [];
  specs.forEach((spec, i) => {
    const words =
      /^(?:(?<oneof>\w+): )?(?:(?<label>optional|repeated) )?(?:map<(?<key>\w+),(?<value>[\w.]+)>|(?<type>[\w.]+)) (?<field>\w+)$/.exec(
        spec,
      );
    if (!words?.groups) throw new Error(`no field: ${spec}`);
    const { oneof, label, key, value, type, field: fieldName } = words.groups;
    const field: Record<string, unknown> = {
      name: fieldName,
      // protoc always sets it.
      jsonName: pascal(`.${fieldName}`).slice(1),
      number: i + 1,
      label: OPTIONAL,
    };
    if (key !== undefined && value !== undefined) {
      const entry = `${pascal(fieldName as string)}Entry`;
      message.nestedType.push(
        create(DescriptorProtoSchema, {
          name: entry,
          options: { mapEntry: true },
          field: [
            { name: "key", number: 1, label: OPTIONAL, ...typeOf(key, names) },
            { name: "value", number: 2, label: OPTIONAL, ...typeOf(value, names) },
          ],
        }),
      );
      Object.assign(field, { label: REPEATED, type: FieldDescriptorProto_Type.MESSAGE, typeName: `.test.v1.${name}.${entry}` });
    } else {
      Object.assign(field, typeOf(type as string, names));
      if (label === "repeated") field.label = REPEATED;
      if (label === "optional") {
        field.proto3Optional = true;
        optional.push({ field, name: `_${fieldName}` });
      }
      if (oneof !== undefined) field.oneofIndex = oneofOf(oneof);
    }
    message.field.push(field as never);
  });
  // Synthetic oneofs come after the real ones.
  for (const { field, name: oneof } of optional) field.oneofIndex = oneofOf(oneof);
  return create(DescriptorProtoSchema, message as never);
}

function typeOf(type: string, names: ReadonlySet<string>) {
  if (type === "Color") return { type: FieldDescriptorProto_Type.ENUM, typeName: ".test.v1.Color" };
  if (type === "google.protobuf.NullValue") return { type: FieldDescriptorProto_Type.ENUM, typeName: `.${type}` };
  const scalar = FieldDescriptorProto_Type[type.toUpperCase() as keyof typeof FieldDescriptorProto_Type];
  if (scalar !== undefined) return { type: scalar };
  return { type: FieldDescriptorProto_Type.MESSAGE, typeName: typeName(type, names) };
}

function typeName(name: string, names: ReadonlySet<string>): string {
  return names.has(name) ? `.test.v1.${name}` : `.${name}`;
}

function pascal(name: string): string {
  return name.replaceAll(/(?:^|_+)(\w|$)/g, (_, letter: string) => letter.toUpperCase());
}

function existing<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("the descriptor has no such thing");
  return value;
}
