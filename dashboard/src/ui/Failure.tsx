import { Alert } from '@mantine/core';

import { ApiError } from '../api/http';
import type { Status } from '../api/types';
import { known, t } from '../i18n';

const statusIn = (error: unknown): Status =>
  error instanceof ApiError ? error.status : { message: error instanceof Error ? error.message : String(error) };

/** headline says in the viewer's language what kind of failure it is. */
export function headline({ code = 0, reason = '' }: Status): string {
  return known('failure', reason) ?? known('failure', String(code)) ?? t('failure.other');
}

/** Failure shows an error: what kind, the words of whoever refused, and field by field why. */
export function Failure({ error }: { error: unknown }) {
  if (!error) return null;
  const status = statusIn(error);
  const causes = status.details?.causes ?? [];
  return (
    <Alert color="red" role="alert" title={headline(status)} mb="md">
      {status.message && <p className="message">{status.message}</p>}
      {causes.length > 1 && (
        <ul>
          {causes.map(({ field, message }) => (
            <li key={`${field} ${message}`}>
              {field && <code>{field}</code>} {message}
            </li>
          ))}
        </ul>
      )}
    </Alert>
  );
}
