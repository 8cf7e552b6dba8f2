import { render } from "preact";
import "../shared/styles/all.css";
import { showDirectionControls } from "../shared/visible-text.ts";
import { App } from "./app.tsx";

showDirectionControls();
render(<App />, document.body);
