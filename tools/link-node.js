// npm ci runs it. npm 10 deletes node_modules/.bin/node after it has linked it: the packages for other platforms, which it removes,
// have a command of the same name. Any Node can run this file.
import { existsSync, symlinkSync } from "node:fs";

const LINK = "node_modules/.bin/node";
const copy = ["node", "node-bin"]
  .map((name) => `../${name}-${process.platform}-${process.arch}/bin/node`)
  .find((path) => existsSync(`node_modules/.bin/${path}`));
if (copy !== undefined && !existsSync(LINK)) symlinkSync(copy, LINK);
