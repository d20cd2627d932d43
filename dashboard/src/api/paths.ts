// Where objects lie in the server's proxy.

/** Cluster is 'garden', or 'shoot/<namespace>/<name>'. */
export type Cluster = 'garden' | `shoot/${string}/${string}`;

export interface Resource {
  group: string;
  version: string;
  resource: string;
  kind: string;
}

const core = (resource: string, kind: string): Resource => ({
  group: 'core.gardener.cloud',
  version: 'v1beta1',
  resource,
  kind,
});
const plain = (resource: string, kind: string): Resource => ({ group: '', version: 'v1', resource, kind });

export const resources = {
  shoots: core('shoots', 'Shoot'),
  projects: core('projects', 'Project'),
  cloudprofiles: core('cloudprofiles', 'CloudProfile'),
  namespacedcloudprofiles: core('namespacedcloudprofiles', 'NamespacedCloudProfile'),
  seeds: core('seeds', 'Seed'),
  quotas: core('quotas', 'Quota'),
  backupbuckets: core('backupbuckets', 'BackupBucket'),
  backupentries: core('backupentries', 'BackupEntry'),
  controllerregistrations: core('controllerregistrations', 'ControllerRegistration'),
  controllerinstallations: core('controllerinstallations', 'ControllerInstallation'),
  credentialsbindings: {
    group: 'security.gardener.cloud',
    version: 'v1alpha1',
    resource: 'credentialsbindings',
    kind: 'CredentialsBinding',
  },
  managedseeds: {
    group: 'seedmanagement.gardener.cloud',
    version: 'v1alpha1',
    resource: 'managedseeds',
    kind: 'ManagedSeed',
  },
  clusters: { group: 'cluster.karmada.io', version: 'v1alpha1', resource: 'clusters', kind: 'Cluster' },
  resourcebindings: {
    group: 'work.karmada.io',
    version: 'v1alpha2',
    resource: 'resourcebindings',
    kind: 'ResourceBinding',
  },
  clusterresourcebindings: {
    group: 'work.karmada.io',
    version: 'v1alpha2',
    resource: 'clusterresourcebindings',
    kind: 'ClusterResourceBinding',
  },
  works: { group: 'work.karmada.io', version: 'v1alpha1', resource: 'works', kind: 'Work' },
  secrets: plain('secrets', 'Secret'),
  serviceaccounts: plain('serviceaccounts', 'ServiceAccount'),
  configmaps: plain('configmaps', 'ConfigMap'),
  events: plain('events', 'Event'),
  nodes: plain('nodes', 'Node'),
  pods: plain('pods', 'Pod'),
} satisfies Record<string, Resource>;

export const apiVersion = ({ group, version }: Resource) => (group === '' ? version : `${group}/${version}`);

/** pathOf leads to a list, to an object of it, or to a subresource of that. */
export function pathOf(
  cluster: Cluster,
  resource: Resource,
  object: { namespace?: string; name?: string; subresource?: string } = {},
): string {
  const parts = [
    ...(cluster === 'garden' ? ['garden'] : cluster.split('/')),
    ...(resource.group === '' ? ['api', resource.version] : ['apis', resource.group, resource.version]),
    ...(object.namespace ? ['namespaces', object.namespace] : []),
    resource.resource,
    ...(object.name ? [object.name] : []),
    ...(object.subresource ? [object.subresource] : []),
  ];
  return `/api/${parts.map(encodeURIComponent).join('/')}`;
}

/** withQuery appends what is not empty to a path. */
export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  return search.size === 0 ? path : `${path}?${search}`;
}
