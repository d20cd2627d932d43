import type { ReactNode } from 'react';

interface PreviewProps {
  label?: string;
  children: ReactNode;
}

/** Preview is text as it is, in a box that scrolls: so the keyboard has to reach it, as nothing in it does. */
export function Preview({ label, children }: PreviewProps) {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className="preview" aria-label={label} tabIndex={0}>
      {children}
    </pre>
  );
}
