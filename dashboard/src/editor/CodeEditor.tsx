import { useEffect, useRef } from 'react';

import { Difference, Editor } from './codemirror';
import type { Fault } from './document';
import type { Completion } from './schema';

interface CodeEditorProps {
  label: string;
  text: string;
  onChange: (text: string) => void;
  faults: Fault[];
  complete: (before: string) => Completion[];
}

/** CodeEditor is the default export of its own chunk: it is loaded by those who edit. */
export default function CodeEditor({ label, text, onChange, faults, complete }: CodeEditorProps) {
  const parent = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(null);
  const present = useRef({ text, onChange, complete });
  useEffect(() => {
    present.current = { text, onChange, complete };
  });
  useEffect(() => {
    if (!parent.current) return;
    const made = new Editor(parent.current, {
      label,
      text: present.current.text,
      onChange: (text) => present.current.onChange(text),
      complete: (before) => present.current.complete(before),
    });
    editor.current = made;
    return () => made.destroy();
  }, [label]);
  useEffect(() => editor.current?.setText(text), [text]);
  useEffect(() => editor.current?.setFaults(faults), [faults]);
  return <div ref={parent} className="editor" />;
}

interface DiffViewProps {
  label: string;
  before: string;
  after: string;
}

export function DiffView({ label, before, after }: DiffViewProps) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!parent.current) return;
    const made = new Difference(parent.current, label, before, after);
    return () => made.destroy();
  }, [label, before, after]);
  return <div ref={parent} className="editor" />;
}
