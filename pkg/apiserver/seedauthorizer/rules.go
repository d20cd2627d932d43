package seedauthorizer

import (
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// verbs are what may be done.
type verbs []string

var (
	get    = verbs{"get"}
	read   = verbs{"get", "list", "watch"}
	create = verbs{"create"}
	change = verbs{"get", "update", "patch"}
	// hold is to read and change what somebody else creates and deletes.
	hold = verbs{"get", "list", "watch", "update", "patch"}
	// own is to have the whole life of an object in hand.
	own    = verbs{"get", "list", "watch", "create", "update", "patch", "delete"}
	report = verbs{"create", "patch", "update"}
)

// access says what gardenlets and extensions may do with what belongs to their seed.
type access struct{ gardenlet, extension verbs }

func (a access) of(identity Identity) verbs {
	if identity.Extension {
		return a.extension
	}
	return a.gardenlet
}

// rule says what may be done with one resource.
type rule struct {
	access
	// subresources by name; others are not for seeds.
	subresources map[string]access
	// catalogue: the objects are the same for all seeds, and may be read by all.
	catalogue bool
	// selectors are the fields that name an object's seed. List and watch are allowed where they select the seed's own.
	selectors []string
	// shootSelector is the field that names a shoot, in the object's namespace. List and watch are allowed where it
	// selects one of the seed's.
	shootSelector string
	// belongs are ways in which an object may belong to a seed; one is enough.
	belongs []relation
	// creates says where objects may be created whose names are not known yet.
	creates relation
}

// question is one request, as relations see it.
type question struct {
	graph *Graph
	Identity
	verb, subresource, namespace, name string
}

// relation tells whether an object, or the objects of a namespace, belong to a seed.
type relation func(question) bool

func (q question) reaches(kind Kind, namespace, name string) bool {
	return q.graph.Reaches(Vertex{kind, namespace, name}, q.Seed)
}

func (q question) reads() bool { return slices.Contains(read, q.verb) }

// inGraph: the object itself leads to the seed.
func inGraph(kind Kind) relation {
	return func(q question) bool { return q.reaches(kind, q.namespace, q.name) }
}

// readInGraph: the object leads to the seed, and is somebody else's.
func readInGraph(kind Kind) relation {
	return func(q question) bool { return q.reads() && q.subresource == "" && q.reaches(kind, q.namespace, q.name) }
}

// ofShoot: the object is called <shoot>.<suffix>, and the shoot is on the seed.
func ofShoot(suffixes ...string) relation {
	return func(q question) bool {
		name, suffix, _ := strings.Cut(q.name, ".")
		return slices.Contains(suffixes, suffix) && q.reaches(kindShoot, q.namespace, name)
	}
}

// ofBucket: the Secret holds the access, made by an extension, to a bucket that the seed cares for.
func ofBucket(q question) bool {
	bucket, found := strings.CutPrefix(q.name, gardencorev1beta1.GeneratedBackupBucketSecretPrefix)
	return found && q.namespace == gardencorev1beta1.GardenNamespace &&
		q.graph.Cares(Vertex{kindBackupBucket, "", bucket}, q.Seed)
}

// likeShoot: the object has the name of a shoot of the seed.
func likeShoot(q question) bool { return q.reaches(kindShoot, q.namespace, q.name) }

// likeSeed: the object has the name of the seed, and lies in the namespace.
func likeSeed(namespace string) relation {
	return func(q question) bool { return q.name == q.Seed && q.namespace == namespace }
}

// seedNamespace: the object lies in the namespace of the seed.
func seedNamespace(q question) bool {
	return q.namespace == gardencorev1beta1.SeedNamespaceNamePrefix+q.Seed
}

// isSeedNamespace: the object is the namespace of the seed.
func isSeedNamespace(q question) bool {
	return q.name == gardencorev1beta1.SeedNamespaceNamePrefix+q.Seed
}

// shootNamespace: shoots of the seed lie in the namespace.
func shootNamespace(q question) bool { return q.reaches(kindNamespace, "", q.namespace) }

// fleetNamespace: the seed runs a fleet of the namespace, so all shoots there may become members: they are read, and
// asked for credentials.
func fleetNamespace(q question) bool {
	return (q.reads() || q.subresource != "") && q.subresource != "status" &&
		q.reaches(kindFleetNamespace, "", q.namespace)
}

// growthNamespace: the seed runs a fleet of the namespace that may have its shoots enlarged, and create more, as the
// owners of the project allowed in the fleet's Shoot. What an extension may change of a shoot is left to the admission
// plugin SeedRestriction.
func growthNamespace(q question) bool {
	return q.Extension && q.subresource == "" && q.reaches(kindGrowthNamespace, "", q.namespace)
}

// ownShoot: the shoot is on the seed. Extensions only read it.
func ownShoot(q question) bool {
	return (!q.Extension || q.reads() || q.subresource != "") && q.reaches(kindShoot, q.namespace, q.name)
}

// eventNamespace: where events are about objects of the seed. Those of objects without a namespace are in "default".
func eventNamespace(q question) bool {
	return q.namespace == corev1.NamespaceDefault || q.namespace == gardencorev1beta1.GardenNamespace ||
		seedNamespace(q) || shootNamespace(q)
}

func anywhere(question) bool { return true }

// rules by resource. What is not listed is not for seeds.
var rules = map[schema.GroupResource]rule{
	core("shoots"): {
		access: access{gardenlet: hold, extension: own}, selectors: []string{"spec.seedName", "status.seedName"},
		creates: growthNamespace,
		subresources: map[string]access{
			"status": {gardenlet: change}, "adminkubeconfig": {create, create}, "viewerkubeconfig": {create, create},
		},
		belongs: []relation{ownShoot, fleetNamespace, growthNamespace},
	},
	core("seeds"): {
		access:       access{gardenlet: own, extension: read},
		subresources: map[string]access{"status": {gardenlet: change}},
		belongs:      []relation{unlessDeleted(likeSeed("")), readInGraph(kindSeed), deletedWithManagedSeed},
		creates:      anywhere,
	},
	core("backupbuckets"): {
		access:       access{gardenlet: hold, extension: read},
		subresources: map[string]access{"status": {gardenlet: change}},
		selectors:    []string{"spec.seedName"}, belongs: []relation{inGraph(kindBackupBucket)},
	},
	core("backupentries"): {
		access:       access{gardenlet: own, extension: read},
		subresources: map[string]access{"status": {gardenlet: change}},
		selectors:    []string{"spec.seedName", "status.seedName"}, belongs: []relation{inGraph(kindBackupEntry)},
		creates: gardenletOnly(shootNamespace),
	},
	core("controllerinstallations"): {
		access:       access{gardenlet: hold, extension: read},
		subresources: map[string]access{"status": {gardenlet: change}},
		selectors:    []string{"spec.seedRef.name"}, belongs: []relation{inGraph(kindControllerInstallation)},
	},
	core("controllerregistrations"): {access: access{read, read}, catalogue: true},
	core("controllerdeployments"): {
		access: access{gardenlet: read}, belongs: []relation{inGraph(kindControllerDeployment)},
	},
	core("cloudprofiles"): {access: access{read, read}, belongs: []relation{inGraph(kindCloudProfile)}},
	core("namespacedcloudprofiles"): {
		access: access{read, read}, belongs: []relation{inGraph(kindNamespacedCloudProfile)},
	},
	core("exposureclasses"): {access: access{read, read}, belongs: []relation{inGraph(kindExposureClass)}},
	core("projects"):        {access: access{read, read}, belongs: []relation{inGraph(kindProject)}},
	core("quotas"):          {access: access{gardenlet: read}, belongs: []relation{inGraph(kindQuota)}},
	core("secretbindings"):  {access: access{gardenlet: read}, belongs: []relation{inGraph(kindSecretBinding)}},
	core("shootstates"): {
		access: access{gardenlet: own}, belongs: []relation{likeShoot}, creates: gardenletOnly(shootNamespace),
	},
	core("internalsecrets"): {
		access: access{gardenlet: own}, belongs: []relation{ofShoot(shootSecrets...), readInGraph(kindInternalSecret)},
		creates: shootNamespace,
	},
	security("credentialsbindings"): {
		access: access{gardenlet: read}, belongs: []relation{inGraph(kindCredentialsBinding)},
	},
	security("workloadidentities"): {
		access: access{read, read}, subresources: map[string]access{"token": {gardenlet: create}},
		belongs: []relation{inGraph(kindWorkloadIdentity)},
	},
	operationsv1alpha1.Resource("bastions"): {
		access:       access{gardenlet: hold, extension: read},
		subresources: map[string]access{"status": {gardenlet: change}},
		selectors:    []string{"spec.seedName"}, belongs: []relation{inGraph(kindBastion)},
	},
	seedmanagementv1alpha1.Resource("managedseeds"): {
		access: access{gardenlet: hold}, subresources: map[string]access{"status": {gardenlet: change}},
		shootSelector: "spec.shoot.name", belongs: []relation{inGraph(kindManagedSeed)},
	},
	seedmanagementv1alpha1.Resource("gardenlets"): {
		access: access{gardenlet: read}, subresources: map[string]access{"status": {gardenlet: change}},
		belongs: []relation{likeSeed(gardencorev1beta1.GardenNamespace)},
	},

	builtin("namespaces"): {
		access: access{gardenlet: verbs{"get", "list", "watch", "create"}, extension: get}, creates: anywhere,
		belongs: []relation{isSeedNamespace, readNamespace},
	},
	builtin("secrets"): {
		access: access{own, read}, creates: anyOf(shootNamespace, gardenletOnly(tokenNamespace),
			gardenletOnly(inGardenNamespace)),
		belongs: []relation{
			seedNamespace, gardenletOnly(ofBucket), gardenletOnly(ofShoot(shootSecrets...)),
			gardenletOnly(readInGraph(kindSecret)), gardenletOnly(bootstrapToken),
		},
	},
	builtin("configmaps"): {
		access: access{own, read}, creates: shootNamespace,
		belongs: []relation{
			seedNamespace, ofShoot(shootConfigMaps...), gardenletOnly(ofShoot(shootOperation)),
			readInGraph(kindConfigMap),
		},
	},
	builtin("serviceaccounts"): {
		access: access{gardenlet: own, extension: get}, subresources: map[string]access{"token": {gardenlet: create}},
		belongs: []relation{seedNamespace, gardenletOnly(bootstrapAccount)}, creates: gardenletOnly(inGardenNamespace),
	},
	builtin("events"): {access: access{report, report}, belongs: []relation{eventNamespace}},
	{Group: eventsv1.GroupName, Resource: "events"}: {
		access: access{report, report}, belongs: []relation{eventNamespace},
	},
	{Group: coordinationv1.GroupName, Resource: "leases"}: {
		access: access{own, own}, belongs: []relation{
			gardenletOnly(likeSeed(gardencorev1beta1.GardenerSeedLeaseNamespace)), seedNamespace,
		}, creates: gardenletOnly(inLeaseNamespace),
	},
	{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}: {
		access:  access{gardenlet: verbs{"get", "list", "watch", "create"}},
		belongs: []relation{inGraph(kindCertificateSigningRequest)}, creates: anywhere,
	},
}

// shootSecrets and shootConfigMaps are the suffixes of objects in a project's namespace that belong to one shoot.
var (
	shootSecrets = []string{
		gardencorev1beta1.ShootProjectSecretSuffixCAClient, "ca-cluster", "kubeconfig", "monitoring", "ssh-keypair",
		"ssh-keypair.old",
	}
	shootConfigMaps = []string{gardencorev1beta1.ShootProjectConfigMapSuffixCACluster, "ca-kubelet"}
	// shootOperation is for people who look on; no extension has a part in it.
	shootOperation = gardencorev1beta1.ShootProjectConfigMapSuffixOperation
)

// IsShootSecret tells whether Secrets and InternalSecrets called <shoot>.<suffix> belong to the shoot.
func IsShootSecret(suffix string) bool { return slices.Contains(shootSecrets, suffix) }

func readNamespace(q question) bool { return q.reads() && q.reaches(kindNamespace, "", q.name) }

func inLeaseNamespace(q question) bool {
	return q.namespace == gardencorev1beta1.GardenerSeedLeaseNamespace
}

func inGardenNamespace(q question) bool {
	return q.namespace == gardencorev1beta1.GardenNamespace && q.subresource == ""
}

func tokenNamespace(q question) bool {
	return q.namespace == seedmanagementv1alpha1.BootstrapTokenNamespace
}

// gardenletOnly keeps a relation from extensions: gardenlet hands them, in the seed, the credentials that they need.
func gardenletOnly(r relation) relation {
	return func(q question) bool { return !q.Extension && r(q) }
}

func core(resource string) schema.GroupResource { return gardencorev1beta1.Resource(resource) }

func security(resource string) schema.GroupResource { return securityv1alpha1.Resource(resource) }

func builtin(resource string) schema.GroupResource {
	return schema.GroupResource{Group: corev1.GroupName, Resource: resource}
}
