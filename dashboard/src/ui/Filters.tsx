import { Checkbox, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useEffect, useState } from 'react';
import { useSearchParams } from 'react-router';

import { t } from '../i18n';

/** useAddress keeps in the address what a page shows, so that it can be sent to somebody. */
export function useAddress(): [URLSearchParams, (name: string, value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  return [search, set];
}

interface FiltersProps {
  /** What words are looked for in, and how they are written. */
  help?: string;
  /** A mark that narrows the list, by its name in the address. */
  only?: { name: string; label: string };
}

/** Filters are what a list is narrowed by: words, q in the address, and a mark, which is 1 there. */
export function Filters({ help, only }: FiltersProps) {
  const [search, set] = useAddress();
  const words = useWords(search.get('q') ?? '', (value) => set('q', value));
  return (
    <div className="filters">
      <TextInput
        className="filter-words"
        aria-label={t('ui.filter')}
        placeholder={t('ui.filter')}
        description={help}
        value={words.typed}
        onChange={(event) => words.type(event.currentTarget.value)}
      />
      {only && (
        <Checkbox
          label={only.label}
          checked={search.get(only.name) === '1'}
          onChange={(event) => set(only.name, event.currentTarget.checked ? '1' : '')}
        />
      )}
    </div>
  );
}

/** useWords changes the address when somebody pauses to type. One that changes otherwise changes what is typed. */
function useWords(present: string, change: (value: string) => void) {
  const [typed, setTyped] = useState(present);
  const [seen, setSeen] = useState(present);
  const [settled] = useDebouncedValue(typed, 200);
  if (seen !== present) {
    setSeen(present);
    setTyped(present);
  }
  useEffect(() => {
    if (settled !== present && settled === typed) change(settled);
    // Only what was typed leads to a change.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [settled]);
  return { typed, type: setTyped };
}
