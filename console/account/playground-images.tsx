import { base64Encode } from "@bufbuild/protobuf/wire";
import { useState } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { Field } from "../shared/field.tsx";
import type { PlaygroundImage } from "./call-texts.ts";

/** An image with its address for the page. */
export type ShownImage = PlaygroundImage & { readonly url: string };

const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MEBIBYTE = 1_048_576;
/** Each call sends all images of the conversation, and a request has at most 32 MiB. */
const MAX_MEBIBYTES = 16;

type ImageFieldProps = {
  readonly images: readonly ShownImage[];
  /** The images of the messages before. */
  readonly sent: readonly PlaygroundImage[];
  readonly onChange: (images: readonly ShownImage[]) => void;
};

/** Images of the next message, from the disk of the person. */
export function ImageField({ images, sent, onChange }: ImageFieldProps) {
  const [error, setError] = useState<string>();
  const add = async (files: readonly File[]) => {
    const problem = problemOf(files, [...sent, ...images]);
    setError(problem);
    if (problem !== undefined) return;
    try {
      onChange([...images, ...(await Promise.all(files.map(read)))]);
    } catch {
      setError("A file could not be read.");
    }
  };
  return (
    <>
      <Field label="Images" hint={`PNG, JPEG, GIF or WebP; at most ${MAX_MEBIBYTES} MiB in a conversation.`} error={error}>
        {(control) => (
          <input
            {...control}
            type="file"
            accept={TYPES.join(",")}
            multiple
            onChange={({ currentTarget }) => {
              void add([...(currentTarget.files ?? [])]);
              // The same file can be chosen again.
              currentTarget.value = "";
            }}
          />
        )}
      </Field>
      {images.length > 0 && (
        <Thumbnails images={images} onRemove={(removed) => onChange(images.filter((image) => image !== removed))} />
      )}
    </>
  );
}

type ThumbnailsProps = {
  readonly images: readonly ShownImage[];
  readonly onRemove?: (image: ShownImage) => void;
};

export function Thumbnails({ images, onRemove }: ThumbnailsProps) {
  return (
    <ul class="plain-list thumbnails" aria-label="Images">
      {images.map((image, index) => (
        // One file can be there twice.
        <li key={index}>
          <img src={image.url} alt="" />
          <span class="muted small">{image.name}</span>
          {onRemove && (
            <Button aria-label={`Remove ${image.name}`} onClick={() => onRemove(image)}>
              Remove
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

function problemOf(files: readonly File[], others: readonly PlaygroundImage[]): string | undefined {
  const wrong = files.find(({ type }) => !TYPES.includes(type));
  if (wrong) return `${wrong.name} is not a PNG, JPEG, GIF or WebP image.`;
  const bytes = files.reduce((sum, { size }) => sum + size, 0) + others.reduce((sum, { bytes: { length } }) => sum + length, 0);
  if (bytes <= MAX_MEBIBYTES * MEBIBYTE) return undefined;
  return `The images of a conversation can have ${MAX_MEBIBYTES} MiB together.`;
}

async function read(file: File): Promise<ShownImage> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  // The Content-Security-Policy of the page permits no other address.
  return { name: file.name, bytes, url: `data:${file.type};base64,${base64Encode(bytes)}` };
}
