import { type ComponentChildren, options } from "preact";

/**
 * Makes characters that reverse the direction of text visible, wherever the pages show text. In a name, they could turn
 * around what is shown behind it, such as the question and the amount of a dialog. An isolating element does not prevent this:
 * the name may contain the character that ends the isolation. Fields of forms keep the name as it is.
 */
export function showDirectionControls(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    const props = node.props as { children?: ComponentChildren };
    if (props.children !== undefined) props.children = visible(props.children);
    before?.(node);
  };
}

function visible(children: ComponentChildren): ComponentChildren {
  if (Array.isArray(children)) return children.map(visible);
  return typeof children === "string" ? children.replace(/\p{Bidi_Control}/gu, "\u{fffd}") : children;
}
