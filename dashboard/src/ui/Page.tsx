import { Anchor, Group, Title } from '@mantine/core';
import { useEffect, useRef, type ReactNode } from 'react';
import { Link } from 'react-router';

interface PageProps {
  title: string;
  /** Where the page lies, from the outside in. */
  path?: { title: string; to: string }[];
  actions?: ReactNode;
  children: ReactNode;
}

/** Page has the heading of every page, which is told to screen readers when one comes to it. */
export function Page({ title, path = [], actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Trellis`;
  }, [title]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <>
      {path.length > 0 && (
        <nav aria-label={title} className="crumbs">
          {path.map(({ title, to }) => (
            <Anchor key={to} component={Link} to={to} size="sm">
              {title}
            </Anchor>
          ))}
        </nav>
      )}
      <Group justify="space-between" mb="md">
        <Title order={1} size="h2" ref={heading} tabIndex={-1} className="page-title">
          {title}
        </Title>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </>
  );
}

interface SectionProps {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

export function Section({ title, actions, children }: SectionProps) {
  return (
    <section className="section" aria-label={title}>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          {title}
        </Title>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </section>
  );
}

/** Facts are names with values. Those without a value are left out. */
export function Facts({ facts }: { facts: [name: string, value: ReactNode][] }) {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
