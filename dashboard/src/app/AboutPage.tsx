import { useQuery } from '@tanstack/react-query';

import { request } from '../api/http';
import { useConfig } from '../api/session';
import { t } from '../i18n';
import { Failure } from '../ui/Failure';
import { Loading } from '../ui/Loading';
import { Facts, Page, Section } from '../ui/Page';
import { Preview } from '../ui/Preview';

/** Library is a package that the pages are made of. The build writes them all into /licences.json. */
interface Library {
  name: string;
  version: string;
  licence: string;
  /** Empty where the package has none. */
  text: string;
}

/** AboutPage is what the pages are, and what of others they are made of. */
export function AboutPage() {
  const { data: config } = useConfig();
  const { data, error } = useQuery({
    queryKey: ['licences'],
    queryFn: () => request<Library[]>('/licences.json'),
    staleTime: Infinity,
  });
  return (
    <Page title={t('about.title')}>
      <Facts
        facts={[
          [t('about.version'), config?.version],
          [t('about.garden'), config?.garden],
          [t('about.licence'), 'Apache-2.0'],
        ]}
      />
      <Section title={t('about.libraries')}>
        <p className="dimmed">{t('about.librariesHelp')}</p>
        <Failure error={error} />
        {!data && !error && <Loading />}
        <ul className="libraries">
          {data?.map((library) => (
            <li key={`${library.name}@${library.version}`}>
              <Licence library={library} />
            </li>
          ))}
        </ul>
      </Section>
    </Page>
  );
}

function Licence({ library: { name, version, licence, text } }: { library: Library }) {
  const title = `${name} ${version} · ${licence}`;
  if (!text) return title;
  return (
    <details>
      <summary>{title}</summary>
      <Preview>{text}</Preview>
    </details>
  );
}
