// The protovalidate package ships no .proto, only the descriptor it was generated from. This script writes
// that descriptor as a .proto into .buf/ (ignored by git), so that our files can import
// "buf/validate/validate.proto". Options are omitted: our code does not read them, and generated code refers
// to the package itself.
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import type { DescEnum, DescExtension, DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { file_buf_validate_validate as file } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

type AnyField = DescField | DescExtension;

function typeOf(field: AnyField): string {
  const scalar = (type: ScalarType) => ScalarType[type].toLowerCase();
  switch (field.fieldKind) {
    case "scalar":
      return scalar(field.scalar);
    case "enum":
      return `.${field.enum.typeName}`;
    case "message":
      return `.${field.message.typeName}`;
    case "list":
      if (field.listKind === "scalar") return scalar(field.scalar);
      return field.listKind === "enum" ? `.${field.enum.typeName}` : `.${field.message.typeName}`;
    case "map": {
      const value = field.mapKind === "scalar" ? scalar(field.scalar) : `.${(field.enum ?? field.message).typeName}`;
      return `map<${scalar(field.mapKey)}, ${value}>`;
    }
  }
}

function fieldLine(field: AnyField): string {
  const label = field.fieldKind === "map" || field.oneof ? "" : field.fieldKind === "list" ? "repeated " : "optional ";
  return `${label}${typeOf(field)} ${field.name} = ${field.number};`;
}

function enumLines(desc: DescEnum): string[] {
  return [`enum ${desc.name} {`, ...desc.values.map((value) => `  ${value.name} = ${value.number};`), "}"];
}

function messageLines(desc: DescMessage): string[] {
  const oneofs = desc.oneofs.flatMap((oneof) => [`oneof ${oneof.name} {`, ...oneof.fields.map(fieldLine), "}"]);
  // The end of a range is exclusive in a descriptor and inclusive in a .proto.
  const ranges = desc.proto.extensionRange.map((range) => `extensions ${range.start} to ${range.end - 1};`);
  return [
    `message ${desc.name} {`,
    ...desc.nestedEnums.flatMap(enumLines),
    ...desc.nestedMessages.filter((nested) => !nested.proto.options?.mapEntry).flatMap(messageLines),
    ...desc.fields.filter((field) => !field.oneof).map(fieldLine),
    ...oneofs,
    ...ranges,
    "}",
  ];
}

const lines = [
  'syntax = "proto2";',
  `package ${file.proto.package};`,
  ...file.proto.dependency.map((name) => `import "${name}";`),
  ...file.enums.flatMap(enumLines),
  ...file.messages.flatMap(messageLines),
  ...file.extensions.flatMap((extension) => [`extend .${extension.extendee.typeName} {`, fieldLine(extension), "}"]),
];
mkdirSync(".buf/buf/validate", { recursive: true });
// A program that reads the file at the same time gets the old text or the new one.
const path = ".buf/buf/validate/validate.proto";
writeFileSync(`${path}.${process.pid}`, `${lines.join("\n")}\n`);
renameSync(`${path}.${process.pid}`, path);
