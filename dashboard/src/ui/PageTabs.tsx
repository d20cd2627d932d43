import { Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';

interface PageTab {
  id: string;
  title: string;
  panel: ReactNode;
}

/** PageTabs are the parts of a page of which one is shown: the one that the address names, or else the first. */
export function PageTabs({ label, tabs }: { label: string; tabs: [PageTab, ...PageTab[]] }) {
  const [search, setSearch] = useSearchParams();
  const asked = tabs.find(({ id }) => id === search.get('tab')) ?? tabs[0];
  return (
    // What the address says of another tab is not for this one.
    <Tabs value={asked.id} onChange={(tab) => setSearch(tab ? { tab } : {})} keepMounted={false}>
      <Tabs.List aria-label={label}>
        {tabs.map(({ id, title }) => (
          <Tabs.Tab key={id} value={id}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ id, panel }) => (
        <Tabs.Panel key={id} value={id} pt="md">
          {panel}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
