// CodeMirror lives in a shadow tree: there its styles are sheets made by script, which the content security policy
// allows, and not elements in the page, which it forbids.
import { autocompletion, closeBrackets, completionKeymap, type CompletionContext } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

import type { Fault } from './document';
import type { Completion } from './schema';

const theme = EditorView.theme({
  '&': { fontSize: '0.85rem', backgroundColor: 'var(--mantine-color-body)', color: 'var(--mantine-color-text)' },
  '&.cm-focused': { outline: '2px solid var(--mantine-color-anchor)' },
  '.cm-scroller': { fontFamily: 'var(--mantine-font-family-monospace)', minHeight: '12rem', maxHeight: '70vh' },
  '.cm-content': { caretColor: 'var(--mantine-color-text)' },
  '.cm-cursor': { borderLeftColor: 'var(--mantine-color-text)' },
  '.cm-gutters': { backgroundColor: 'var(--mantine-color-default)', color: 'var(--mantine-color-dimmed)' },
  '.cm-activeLine': { backgroundColor: 'var(--mantine-color-default-hover)' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--mantine-color-default)', color: 'var(--mantine-color-text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--trellis-selection)' },
});

const highlighting = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: 'var(--trellis-code-key)' },
  { tag: tags.string, color: 'var(--trellis-code-string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--trellis-code-value)' },
  { tag: tags.comment, color: 'var(--mantine-color-dimmed)' },
]);

const appearance = (label: string): Extension => [
  lineNumbers(),
  theme,
  syntaxHighlighting(highlighting),
  yaml(),
  EditorView.lineWrapping,
  // What can be edited has the focus anyway, but is not known for that by all who read pages aloud.
  EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
];

export interface EditorOptions {
  label: string;
  text: string;
  onChange: (text: string) => void;
  complete: (before: string) => Completion[];
}

export class Editor {
  private readonly view: EditorView;

  constructor(parent: HTMLElement, { label, text, onChange, complete }: EditorOptions) {
    const source = (context: CompletionContext) => {
      const word = context.matchBefore(/[\w-]*/);
      if (!context.explicit && (!word || word.from === word.to)) return null;
      const from = word?.from ?? context.pos;
      const options = complete(context.state.sliceDoc(0, from)).map(({ label, detail, info }) => ({
        label,
        detail,
        info,
        type: 'property',
      }));
      return { from, options, validFor: /^[\w-]*$/ };
    };
    this.view = new EditorView({
      parent: shadowOf(parent) as unknown as HTMLElement,
      state: EditorState.create({
        doc: text,
        extensions: [
          appearance(label),
          history(),
          drawSelection(),
          indentOnInput(),
          closeBrackets(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          lintGutter(),
          autocompletion({ override: [source] }),
          // Tab indents; Escape and then Tab leaves the editor, as CodeMirror has it.
          keymap.of([
            ...completionKeymap,
            ...defaultKeymap,
            ...historyKeymap,
            ...searchKeymap,
            ...lintKeymap,
            indentWithTab,
          ]),
          EditorView.updateListener.of(({ docChanged, state }) => docChanged && onChange(state.doc.toString())),
        ],
      }),
    });
  }

  /** setText replaces all, unless it is there already. */
  setText(text: string) {
    const present = this.view.state.doc.toString();
    if (present !== text) this.view.dispatch({ changes: { from: 0, to: present.length, insert: text } });
  }

  setFaults(faults: Fault[]) {
    const length = this.view.state.doc.length;
    const diagnostics = faults.map(({ from, to, message }) => ({
      from: Math.min(from, length),
      to: Math.min(to, length),
      message,
      severity: 'error' as const,
    }));
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  destroy() {
    this.view.destroy();
  }
}

const original = new Compartment();

/** Difference shows two texts as one, with what is taken out and what is added. */
export class Difference {
  private readonly view: EditorView;

  constructor(parent: HTMLElement, label: string, before: string, after: string) {
    this.view = new EditorView({
      parent: shadowOf(parent) as unknown as HTMLElement,
      state: EditorState.create({
        doc: after,
        extensions: [
          appearance(label),
          EditorState.readOnly.of(true),
          original.of(
            unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } }),
          ),
        ],
      }),
    });
  }

  destroy() {
    this.view.destroy();
  }
}

function shadowOf(parent: HTMLElement): ShadowRoot {
  const shadow = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  shadow.replaceChildren();
  return shadow;
}
