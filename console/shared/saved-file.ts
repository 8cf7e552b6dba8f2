import { download } from "./csv.ts";

/** A file of the viewer that is written piece by piece. */
export type SavedFile = {
  /** False if the page keeps the pieces in memory until the file is finished. */
  readonly isOnDisk: boolean;
  write(text: string): Promise<void>;
  /** The viewer has the file after this. */
  finish(): Promise<void>;
  discard(): Promise<void>;
};

type PickFile = (options: { readonly suggestedName: string }) => Promise<FileSystemFileHandle>;

/**
 * Only Chromium can write to a file that the viewer chooses, and only over HTTPS or on this machine. Otherwise the file is kept
 * in memory. Undefined if the viewer chooses no file.
 */
export async function openSavedFile(name: string): Promise<SavedFile | undefined> {
  const { showSaveFilePicker } = globalThis as { showSaveFilePicker?: PickFile };
  if (!showSaveFilePicker) return inMemory(name);
  try {
    const handle = await showSaveFilePicker({ suggestedName: name });
    return onDisk(await handle.createWritable());
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return undefined;
    throw error;
  }
}

function onDisk(stream: FileSystemWritableFileStream): SavedFile {
  return {
    isOnDisk: true,
    write: (text) => stream.write(text),
    finish: () => stream.close(),
    discard: () => stream.abort(),
  };
}

function inMemory(name: string): SavedFile {
  const pieces: string[] = [];
  return {
    isOnDisk: false,
    write: async (text) => {
      pieces.push(text);
    },
    finish: async () => download(name, pieces),
    discard: async () => undefined,
  };
}
