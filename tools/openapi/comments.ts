import type { DescField, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import type { DescriptorProto, FileDescriptorProto, FileDescriptorSet } from "@bufbuild/protobuf/wkt";

/** Returns the comment above a declaration in the .proto, with each paragraph on one line; empty if there is none. */
export type CommentOf = (desc: DescService | DescMethod | DescMessage | DescField) => string;

/** Generated code has no comments, so they come from a descriptor set that was built with source information. */
export function commentsOf(set: FileDescriptorSet): CommentOf {
  const comments = new Map(set.file.flatMap(fileComments));
  return (desc) => comments.get(nameOf(desc)) ?? "";
}

function nameOf(desc: Parameters<CommentOf>[0]): string {
  return "typeName" in desc ? desc.typeName : `${desc.parent.typeName}.${desc.name}`;
}

// Field numbers of these declarations in descriptor.proto. A path consists of field numbers and indices.
const FILE = { message: 4, service: 6 } as const;
const MESSAGE = { field: 2, message: 3 } as const;
const SERVICE = { method: 2 } as const;

function fileComments(file: FileDescriptorProto): [string, string][] {
  const texts = new Map(
    file.sourceCodeInfo?.location.map(({ path, leadingComments }) => [path.join("."), unwrap(leadingComments)]),
  );
  const found: [string, string][] = [];
  const note = (name: string, path: string) => found.push([name, texts.get(path) ?? ""]);
  const visit = (message: DescriptorProto, parent: string, path: string) => {
    const name = `${parent}.${message.name}`;
    note(name, path);
    message.field.forEach((field, i) => {
      note(`${name}.${field.name}`, `${path}.${MESSAGE.field}.${i}`);
    });
    message.nestedType.forEach((nested, i) => {
      visit(nested, name, `${path}.${MESSAGE.message}.${i}`);
    });
  };
  file.messageType.forEach((message, i) => {
    visit(message, file.package, `${FILE.message}.${i}`);
  });
  file.service.forEach((service, i) => {
    const name = `${file.package}.${service.name}`;
    note(name, `${FILE.service}.${i}`);
    service.method.forEach((method, j) => {
      note(`${name}.${method.name}`, `${FILE.service}.${i}.${SERVICE.method}.${j}`);
    });
  });
  return found;
}

/** Joins the lines of each paragraph. */
function unwrap(comment: string): string {
  const paragraphs = comment.trim().split(/\n\s*\n/);
  return paragraphs.map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, " ")).join("\n\n");
}
