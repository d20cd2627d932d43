package garden

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
	"github.com/trellis-garden/trellis/pkg/controllermanager/bootstrap"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
)

// tenant is one of two seeds, with a project whose shoot it runs.
type tenant struct {
	seed, namespace, project string
	gardenlet, extension     client.Client
}

const leases = "gardener-system-seed-lease"

// madeTenants are those of twoTenants, which several tests use.
var madeTenants *[2]tenant

// twoTenants makes two seeds with everything that may belong to them, once. The garden's roles and policies are those
// of garden-controller-manager.
func twoTenants(t *testing.T) [2]tenant {
	t.Helper()
	if madeTenants != nil {
		return *madeTenants
	}
	eventually(t, func() error { return bootstrap.Ensure(context.Background(), env.Client) })
	if err := env.Client.Create(context.Background(), newProfile("seedauth")); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seedauth-other"}})
	var tenants [2]tenant
	for i, name := range []string{"auth-one", "auth-two"} {
		tenants[i] = newTenant(t, name)
	}
	for _, who := range tenants {
		awaitRights(t, who)
	}
	madeTenants = &tenants
	return tenants
}

// newTenant makes the objects of one seed as an administrator.
func newTenant(t *testing.T, name string) tenant {
	t.Helper()
	result := tenant{seed: name, project: name, namespace: newProject(t, name)}
	object := newSeed(name, "seedauth")
	for _, reference := range []*corev1.ObjectReference{
		&object.Spec.DNS.Internal.CredentialsRef, &object.Spec.DNS.Defaults[0].CredentialsRef,
	} {
		reference.Name = "dns-" + name
	}
	create(t,
		readableBy(name, "dns-"+name),
		object,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-" + name}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + name, Name: "extension"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + name, Name: "token"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: result.namespace, Name: "private"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: result.namespace, Name: "private"}},
		&gardencorev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: result.namespace, Name: "shoot.ca-client"},
		},
		&gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: result.namespace, Name: "private"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: name}},
		&gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket-" + name},
			Spec: gardencorev1beta1.BackupBucketSpec{
				SeedName: &name, Provider: gardencorev1beta1.BackupBucketProvider{Type: "local", Region: "seedauth"},
				CredentialsRef: &corev1.ObjectReference{
					APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns-" + name,
				},
			}},
	)
	identity := newIdentity(result.namespace)
	shoot := newShoot(result.namespace, "shoot", "seedauth", func(s *gardencorev1beta1.Shoot) {
		s.Spec.SeedName = &name
		s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "identity",
			ResourceRef: autoscalingv1.CrossVersionObjectReference{
				APIVersion: securityv1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentity", Name: identity.Name,
			}}}
	})
	create(t, identity, shoot, &gardencorev1beta1.ShootState{
		ObjectMeta: metav1.ObjectMeta{Namespace: result.namespace, Name: "shoot"},
	})
	result.connect(t)
	return result
}

// readableBy is a Secret of the operators that a seed may read.
func readableBy(seed, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: name, Labels: map[string]string{gardencorev1beta1.LabelSeedReadableBy: seed},
		},
	}
}

func (w *tenant) connect(t *testing.T) {
	t.Helper()
	var err error
	if w.gardenlet, err = env.ClientFor(gardencorev1beta1.SeedUserNamePrefix+w.seed,
		gardencorev1beta1.SeedsGroup); err != nil {
		t.Fatal(err)
	}
	account := "system:serviceaccount:seed-" + w.seed
	if w.extension, err = env.ClientFor(account+":extension", "system:serviceaccounts",
		"system:serviceaccounts:seed-"+w.seed); err != nil {
		t.Fatal(err)
	}
}

// awaitRights waits until both API servers know what belongs to the seed.
func awaitRights(t *testing.T, who tenant) {
	t.Helper()
	ctx := context.Background()
	eventually(t, func() error {
		if err := who.gardenlet.Get(ctx, client.ObjectKey{Name: "bucket-" + who.seed},
			&gardencorev1beta1.BackupBucket{}); err != nil {
			return err
		}
		return who.gardenlet.Get(ctx, client.ObjectKey{Namespace: who.namespace, Name: "local"}, &corev1.Secret{})
	})
}

// request is one line of the matrix: a resource with an object, and which verbs the gardenlet and the extensions of the
// seed that it belongs to have, and those of another seed.
type request struct {
	group, resource, subresource, namespace, name string
	gardenlet, extension, others                  string
}

// matrix holds what seeds may do. "S" stands for the seed, "P" for the namespace of its project. Others: everybody may
// read cloud profiles, exposure classes and seeds, and found a project. RBAC also lets everybody list projects; which
// these are is garden-apiserver's to say, and those of another seed's are none (TestAttackHiddenProjects).
var matrix = []request{
	{"core.gardener.cloud", "shoots", "", "P", "shoot", "get list watch update patch", "get list watch", ""},
	{"core.gardener.cloud", "shoots", "status", "P", "shoot", "get update patch", "", ""},
	{"core.gardener.cloud", "shoots", "binding", "P", "shoot", "", "", ""},
	{"core.gardener.cloud", "shoots", "adminkubeconfig", "P", "shoot", "create", "create", ""},
	{"core.gardener.cloud", "shoots", "viewerkubeconfig", "P", "shoot", "create", "create", ""},
	{
		"core.gardener.cloud", "seeds", "", "", "S", "get list watch create update patch", "get list watch",
		"get list watch",
	},
	{"core.gardener.cloud", "seeds", "status", "", "S", "get update patch", "", ""},
	{"core.gardener.cloud", "backupbuckets", "", "", "bucket-S", "get list watch update patch", "get list watch", ""},
	{"core.gardener.cloud", "backupbuckets", "status", "", "bucket-S", "get update patch", "", ""},
	{"core.gardener.cloud", "backupentries", "", "P", "unknown", "", "", ""},
	{"core.gardener.cloud", "controllerinstallations", "", "", "unknown", "", "", ""},
	{
		"core.gardener.cloud", "controllerregistrations", "", "", "any", "get list watch", "get list watch",
		"get list watch",
	},
	{"core.gardener.cloud", "controllerdeployments", "", "", "any", "", "", ""},
	{"core.gardener.cloud", "cloudprofiles", "", "", "any", "get list watch", "get list watch", "get list watch"},
	{"core.gardener.cloud", "exposureclasses", "", "", "any", "get list watch", "get list watch", "get list watch"},
	{"core.gardener.cloud", "namespacedcloudprofiles", "", "P", "unused", "", "", ""},
	{
		"core.gardener.cloud", "projects", "", "", "S", "get list watch create", "get list watch create",
		"list watch create",
	},
	{"core.gardener.cloud", "quotas", "", "P", "unused", "", "", ""},
	{"core.gardener.cloud", "secretbindings", "", "P", "unused", "", "", ""},
	{
		"core.gardener.cloud", "shootstates", "", "P", "shoot", "get list watch create update patch delete", "", "",
	},
	{
		"core.gardener.cloud", "internalsecrets", "", "P", "shoot.ca-client",
		"get list watch create update patch delete", "", "",
	},
	{"core.gardener.cloud", "internalsecrets", "", "P", "private", "", "", ""},
	{"security.gardener.cloud", "credentialsbindings", "", "P", "local", "get list watch", "", ""},
	{"security.gardener.cloud", "workloadidentities", "", "P", "aws", "get list watch", "get list watch", ""},
	{"security.gardener.cloud", "workloadidentities", "token", "P", "aws", "create", "", ""},
	{"security.gardener.cloud", "workloadidentities", "", "P", "unused", "", "", ""},
	{"security.gardener.cloud", "workloadidentities", "token", "P", "unused", "", "", ""},
	{"", "namespaces", "", "", "P", "get list watch", "get", ""},
	{"", "namespaces", "", "", "seed-S", "get list watch create", "get", ""},
	{"", "namespaces", "", "", "kube-system", "", "", ""},
	{"", "secrets", "", "P", "local", "get list watch", "", ""},
	{"", "secrets", "", "P", "private", "", "", ""},
	{"", "secrets", "", "P", "shoot.kubeconfig", "get list watch create update patch delete", "", ""},
	{"", "secrets", "", "garden", "dns-S", "get list watch", "", ""},
	{"", "secrets", "", "garden", "seedauth-other", "", "", ""},
	{"", "secrets", "", "garden", "generated-bucket-bucket-S", "get list watch create update patch delete", "", ""},
	{"", "secrets", "", "seed-S", "token", "get list watch create update patch delete", "get list watch", ""},
	{"", "configmaps", "", "P", "shoot.ca-cluster", "get list watch create update patch delete", "get list watch", ""},
	{"", "configmaps", "", "P", "shoot.operation", "get list watch create update patch delete", "", ""},
	{"", "configmaps", "", "P", "private", "", "", ""},
	{"", "configmaps", "", "kube-system", "cluster-identity", "get", "get", "get"},
	{"", "serviceaccounts", "", "seed-S", "extension", "get list watch create update patch delete", "get", ""},
	{"", "serviceaccounts", "token", "seed-S", "extension", "create", "", ""},
	{"", "serviceaccounts", "", "P", "robot", "", "", ""},
	{"", "events", "", "P", "any", "create update patch", "create update patch", ""},
	{"", "services", "", "garden", "garden-apiserver", "", "", ""},
	{"", "pods", "", "P", "any", "", "", ""},
	{"coordination.k8s.io", "leases", "", leases, "S", "get list watch create update patch delete", "", ""},
	{"coordination.k8s.io", "leases", "", "kube-system", "any", "", "", ""},
	{"certificates.k8s.io", "certificatesigningrequests", "", "", "unknown", "create", "", ""},
	{"certificates.k8s.io", "certificatesigningrequests", "approval", "", "unknown", "", "", ""},
	{"rbac.authorization.k8s.io", "clusterroles", "", "", "any", "", "", ""},
	{"rbac.authorization.k8s.io", "clusterrolebindings", "", "", "any", "", "", ""},
	{"rbac.authorization.k8s.io", "rolebindings", "", "P", "any", "", "", ""},
	{"apiregistration.k8s.io", "apiservices", "", "", "any", "", "", ""},
	{"admissionregistration.k8s.io", "validatingadmissionpolicies", "", "", "any", "", "", ""},
}

func (r request) of(w tenant) authorizationv1.ResourceAttributes {
	fill := strings.NewReplacer("seed-S", "seed-"+w.seed, "bucket-S", "bucket-"+w.seed, "dns-S", "dns-"+w.seed)
	exact := func(text string) string {
		switch text {
		case "S":
			return w.seed
		case "P":
			return w.namespace
		}
		return fill.Replace(text)
	}
	return authorizationv1.ResourceAttributes{
		Group: r.group, Version: "*", Resource: r.resource, Subresource: r.subresource, Namespace: exact(r.namespace),
		Name: exact(r.name),
	}
}

// TestSeedsMatrix tries every verb on every kind for both gardenlets and their extensions, against objects of their own
// and of the other seed. The garden's kube-apiserver is asked, which asks garden-apiserver.
func TestSeedsMatrix(t *testing.T) {
	tenants := twoTenants(t)
	for i, own := range tenants {
		other := tenants[1-i]
		for _, line := range matrix {
			for _, verb := range []string{
				"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
			} {
				expectRight(t, own.gardenlet, own, line, verb, line.gardenlet)
				expectRight(t, own.extension, own, line, verb, line.extension)
				if line.of(own) != line.of(other) {
					expectRight(t, own.gardenlet, other, line, verb, line.others)
					expectRight(t, own.extension, other, line, verb, line.others)
				}
			}
		}
	}
	t.Run("garden", func(t *testing.T) { seedsUseTheirOwn(t, tenants) })
	t.Run("restriction", func(t *testing.T) { seedsWriteTheirOwn(t, tenants) })
	t.Run("forged status", func(t *testing.T) { attackForgedStatus(t, tenants) })
	t.Run("moves", func(t *testing.T) { shootMoves(t, tenants) })
	t.Run("path", func(t *testing.T) { onlyKubeAPIServerAsks(t, tenants[0]) })
}

func expectRight(t *testing.T, who client.Client, of tenant, line request, verb, allowed string) {
	t.Helper()
	attributes := line.of(of)
	attributes.Verb = verb
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}
	if err := who.Create(context.Background(), review); err != nil {
		t.Fatal(err)
	}
	if want := slices.Contains(strings.Fields(allowed), verb); review.Status.Allowed != want {
		self := &authenticationv1.SelfSubjectReview{}
		_ = who.Create(context.Background(), self)
		t.Errorf("%s: %s %s/%s/%s %s/%s: allowed = %v, want %v (%s)", self.Status.UserInfo.Username, verb, line.group,
			line.resource, line.subresource,
			attributes.Namespace, attributes.Name, review.Status.Allowed, want, review.Status.Reason)
	}
}

func selecting(field, value string) client.ListOption {
	return client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(field, value)}
}

// seedsUseTheirOwn makes the calls that a gardenlet makes, and the same for another's objects.
func seedsUseTheirOwn(t *testing.T, tenants [2]tenant) {
	ctx := context.Background()
	for i, own := range tenants {
		other := tenants[1-i]
		reads := func(object client.Object, namespace, name string) func(w tenant) error {
			return func(w tenant) error {
				fill := strings.NewReplacer("P", w.namespace, "S", w.seed)
				return own.gardenlet.Get(ctx, client.ObjectKey{
					Namespace: fill.Replace(namespace), Name: fill.Replace(name),
				}, object)
			}
		}
		for what, call := range map[string]func(w tenant) error{
			"get shoot":           reads(&gardencorev1beta1.Shoot{}, "P", "shoot"),
			"get binding":         reads(&securityv1alpha1.CredentialsBinding{}, "P", "local"),
			"get credentials":     reads(&corev1.Secret{}, "P", "local"),
			"get dns credentials": reads(&corev1.Secret{}, "garden", "dns-S"),
			"get namespace":       reads(&corev1.Namespace{}, "", "P"),
			"get lease":           reads(&coordinationv1.Lease{}, leases, "S"),
			"get internal secret": reads(&gardencorev1beta1.InternalSecret{}, "P", "shoot.ca-client"),
			"get state":           reads(&gardencorev1beta1.ShootState{}, "P", "shoot"),
			"list shoots": func(w tenant) error {
				return own.gardenlet.List(ctx, &gardencorev1beta1.ShootList{}, selecting("spec.seedName", w.seed))
			},
			"list installations": func(w tenant) error {
				return own.gardenlet.List(ctx, &gardencorev1beta1.ControllerInstallationList{},
					selecting("spec.seedRef.name", w.seed))
			},
			"list buckets": func(w tenant) error {
				return own.gardenlet.List(ctx, &gardencorev1beta1.BackupBucketList{},
					selecting("spec.seedName", w.seed))
			},
			"renew lease": func(w tenant) error {
				return own.gardenlet.Patch(ctx,
					&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: w.seed}},
					merge(`{"spec":{"holderIdentity":"x"}}`))
			},
			"shoot status": func(w tenant) error {
				return own.gardenlet.Status().Patch(ctx,
					&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shoot"}},
					merge(`{"status":{"hibernated":false}}`))
			},
			"shoot finalizer": func(w tenant) error {
				return own.gardenlet.Patch(ctx,
					&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shoot"}},
					merge(`{"metadata":{"finalizers":["gardener"]}}`))
			},
			"seed status": func(w tenant) error {
				return own.gardenlet.Status().Patch(ctx,
					&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: w.seed}},
					merge(`{"status":{"clusterIdentity":"x"}}`))
			},
			"publish authorities": func(w tenant) error {
				return client.IgnoreAlreadyExists(own.gardenlet.Create(ctx,
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shoot.ca-cluster"}}))
			},
			"token of an extension": func(w tenant) error {
				account := &corev1.ServiceAccount{
					ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + w.seed, Name: "extension"},
				}
				return own.gardenlet.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
			},
		} {
			if err := call(own); err != nil {
				t.Errorf("seed %s, %s of its own: %v", own.seed, what, err)
			}
			if err := call(other); !apierrors.IsForbidden(err) {
				t.Errorf("seed %s, %s of another: %v, want it forbidden", own.seed, what, err)
			}
		}
		listed := &gardencorev1beta1.ShootList{}
		if err := own.gardenlet.List(ctx, listed); !apierrors.IsForbidden(err) {
			t.Errorf("seed %s lists all shoots: %v", own.seed, err)
		}
	}
}

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

// seedsWriteTheirOwn tries writes that only a look into the object, or at its name, can tell apart.
func seedsWriteTheirOwn(t *testing.T, tenants [2]tenant) {
	ctx := context.Background()
	own, other := tenants[0], tenants[1]
	bucket := func(name, seed string) *gardencorev1beta1.BackupBucket {
		return &gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: gardencorev1beta1.BackupBucketSpec{
				SeedName: &seed, Provider: gardencorev1beta1.BackupBucketProvider{Type: "local", Region: "seedauth"},
				CredentialsRef: &corev1.ObjectReference{
					APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns-" + own.seed,
				},
			}}
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	makes := func(object client.Object) func() error {
		return func() error { return own.gardenlet.Create(ctx, object, client.DryRunAll) }
	}
	patches := func(object client.Object, patch string) func() error {
		return func() error { return own.gardenlet.Patch(ctx, object, merge(patch)) }
	}
	shoot := func() *gardencorev1beta1.Shoot {
		return &gardencorev1beta1.Shoot{ObjectMeta: named(own.namespace, "shoot")}
	}
	for _, test := range []struct {
		what  string
		call  func() error
		works bool
	}{
		{"its bucket", makes(bucket("new-"+own.seed, own.seed)), false},
		{
			"access to its bucket", makes(&corev1.Secret{
				ObjectMeta: named("garden", "generated-bucket-bucket-"+own.seed),
			}), true,
		},
		{
			"access to another's bucket", makes(&corev1.Secret{
				ObjectMeta: named("garden", "generated-bucket-bucket-"+other.seed),
			}), false,
		},
		{"any secret of the operators", makes(&corev1.Secret{ObjectMeta: named("garden", "mine")}), false},
		{"another's bucket", makes(bucket("new-"+other.seed, other.seed)), false},
		{"another seed", makes(newSeed("auth-three", "seedauth")), false},
		{
			"an internal secret of its shoot",
			makes(&gardencorev1beta1.InternalSecret{ObjectMeta: named(own.namespace, "shoot.kubeconfig")}), true,
		},
		{
			"an internal secret of no shoot",
			makes(&gardencorev1beta1.InternalSecret{ObjectMeta: named(own.namespace, "nobody.kubeconfig")}), false,
		},
		{
			"the state of no shoot", makes(&gardencorev1beta1.ShootState{ObjectMeta: named(own.namespace, "nobody")}),
			false,
		},
		{"a secret of its shoot", makes(&corev1.Secret{ObjectMeta: named(own.namespace, "shoot.monitoring")}), true},
		{"any secret in its project", makes(&corev1.Secret{ObjectMeta: named(own.namespace, "mine")}), false},
		{"any config map in its project", makes(&corev1.ConfigMap{ObjectMeta: named(own.namespace, "mine")}), false},
		{"the operation on its shoot", makes(operationOf(own, nil)), true},
		{"the operation on another's shoot", makes(operationOf(other, nil)), false},
		{
			"the operation on its shoot, gone with another one", makes(operationOf(own,
				func(owner *metav1.OwnerReference) { owner.Name = "another" })), false,
		},
		{
			"the operation on its shoot, gone with a Secret", makes(operationOf(own,
				func(owner *metav1.OwnerReference) { owner.APIVersion, owner.Kind = "v1", "Secret" })), false,
		},
		{
			"the operation on its shoot, for which the shoot stays", makes(operationOf(own,
				func(owner *metav1.OwnerReference) { owner.BlockOwnerDeletion = new(true) })), false,
		},
		{"a secret in its namespace", makes(&corev1.Secret{ObjectMeta: named("seed-"+own.seed, "mine")}), true},
		{"another's lease", makes(&coordinationv1.Lease{ObjectMeta: named(leases, "auth-three")}), false},
		{"any namespace", makes(&corev1.Namespace{ObjectMeta: named("", "mine")}), false},
		{"another seed's namespace", makes(&corev1.Namespace{ObjectMeta: named("", "seed-auth-three")}), false},
		{"a service account elsewhere", makes(&corev1.ServiceAccount{ObjectMeta: named("kube-system", "mine")}), false},
		{"its shoot away", patches(shoot(), fmt.Sprintf(`{"spec":{"seedName":%q}}`, other.seed)), false},
		{"its shoot's version", patches(shoot(), `{"spec":{"purpose":"production"}}`), false},
		{
			"its bucket away", patches(&gardencorev1beta1.BackupBucket{ObjectMeta: named("", "bucket-"+own.seed)},
				fmt.Sprintf(`{"spec":{"seedName":%q}}`, other.seed)), false,
		},
		{"its shoot's finalizer", patches(shoot(), `{"metadata":{"finalizers":["gardener"]}}`), true},
		{
			"its shoot's labels", patches(shoot(),
				`{"metadata":{"labels":{"shoot.gardener.cloud/status":"progressing"}}}`), false,
		},
	} {
		eventually(t, func() error { // the policy of kube-apiserver takes a moment to be known
			err := test.call()
			if (err == nil) != test.works {
				return fmt.Errorf("%s: %v, want success = %v", test.what, err, test.works)
			}
			return nil
		})
	}
}

// operationOf is what tells of the operation on a tenant's shoot, with an owner that is changed.
func operationOf(who tenant, change func(*metav1.OwnerReference)) *corev1.ConfigMap {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: who.namespace, Name: "shoot", UID: "1"},
	}
	configMap := operationgraph.ConfigMap(shoot)
	if change != nil {
		change(&configMap.OwnerReferences[0])
	}
	return configMap
}

// shootMoves lets another seed report that it has the shoot's control plane, as at the end of a move: the rights follow
// at once. To ask for a move is refused.
func shootMoves(t *testing.T, tenants [2]tenant) {
	ctx := context.Background()
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: tenants[0].namespace, Name: "shoot"}}
	sees := func(who tenant, want bool) {
		t.Helper()
		eventually(t, func() error {
			for _, object := range []client.Object{&corev1.Secret{}, &securityv1alpha1.CredentialsBinding{}} {
				err := who.gardenlet.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: "local"}, object)
				if want != (err == nil) {
					return fmt.Errorf("seed %s, %T: %v, want success = %v", who.seed, object, err, want)
				}
			}
			return nil
		})
	}
	report := func(seed string) {
		t.Helper()
		if err := env.Client.Status().Patch(ctx, shoot,
			merge(fmt.Sprintf(`{"status":{"seedName":%q}}`, seed))); err != nil {
			t.Fatal(err)
		}
	}
	sees(tenants[1], false)
	report(tenants[1].seed)
	sees(tenants[0], true)
	sees(tenants[1], true)
	report(tenants[0].seed)
	sees(tenants[0], true)
	sees(tenants[1], false)
	err := env.Client.SubResource("binding").Patch(ctx, shoot,
		merge(fmt.Sprintf(`{"spec":{"seedName":%q}}`, tenants[1].seed)))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "never created") {
		t.Errorf("a move: %v, want the reason why it is refused", err)
	}
}

// onlyKubeAPIServerAsks: the path of the authorizer is for nobody else.
func onlyKubeAPIServerAsks(t *testing.T, who tenant) {
	for user, want := range map[string]bool{
		"jane": false, gardencorev1beta1.SeedUserNamePrefix + who.seed: false, gardencorev1beta1.GardenKubeAPIServerUser: true,
	} {
		config, err := env.ConfigFor(env.GardenAPIServerURL, user, gardencorev1beta1.SeedsGroup)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := postReview(config, who,
			&authorizationv1.ResourceAttributes{
				Verb: "get", Group: gardencorev1beta1.GroupName, Resource: "seeds", Name: who.seed,
			})
		if answer != want || (err == nil) != want {
			t.Errorf("%s asks: allowed = %v, %v; want an answer: %v", user, answer, err, want)
		}
	}
}

// postReview asks garden-apiserver about the rights of a seed's gardenlet. Nothing remembers its answer.
func postReview(config *rest.Config, who tenant, wanted *authorizationv1.ResourceAttributes) (allowed bool, err error) {
	asker, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, err
	}
	return askSeedAuthorizer(asker.RESTClient(), gardencorev1beta1.SeedUserNamePrefix+who.seed, wanted)
}

// askSeedAuthorizer asks as the garden's kube-apiserver does.
func askSeedAuthorizer(asker rest.Interface, user string,
	wanted *authorizationv1.ResourceAttributes) (allowed bool, err error) {
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec:     authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: wanted},
	}
	if strings.HasPrefix(user, gardencorev1beta1.SeedUserNamePrefix) {
		review.Spec.Groups = []string{gardencorev1beta1.SeedsGroup}
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, err
	}
	answer, err := asker.Post().AbsPath(seedauthorizer.Path).Body(body).DoRaw(context.Background())
	if err != nil {
		return false, err
	}
	err = json.Unmarshal(answer, review)
	return review.Status.Allowed, err
}

// TestFleetsGrowAsTheirProjectAllows: the extension of a seed changes pools, and creates and deletes shoots, from when
// the fleet's Shoot allows it until it does not.
func TestFleetsGrowAsTheirProjectAllows(t *testing.T) {
	ctx := context.Background()
	eventually(t, func() error { return bootstrap.Ensure(ctx, env.Client) })
	create(t, newProfile("seedauth-growth"))
	create(t, &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "fleets"},
		Spec: gardencorev1beta1.ControllerRegistrationSpec{
			Resources: []gardencorev1beta1.ControllerResource{
				{Kind: "Extension", Type: "federation", WorkerlessSupported: new(true)},
			},
		}})
	seed := newSeed("auth-growth", "seedauth-growth")
	seed.Spec.DNS.Internal.CredentialsRef.Name, seed.Spec.DNS.Defaults[0].CredentialsRef.Name = "dns-auth-growth",
		"dns-auth-growth"
	who := tenant{seed: seed.Name, project: "growth", namespace: newProject(t, "growth")}
	create(t, readableBy(seed.Name, "dns-auth-growth"), seed)
	who.connect(t)
	fleet := newShoot(who.namespace, "fleet", "seedauth-growth", func(s *gardencorev1beta1.Shoot) {
		s.Spec.SeedName, s.Spec.Networking, s.Spec.CredentialsBindingName = &seed.Name, nil, nil
		s.Spec.Provider.Workers, s.Spec.Extensions = nil, []gardencorev1beta1.Extension{{Type: "federation"}}
	})
	member := newShoot(who.namespace, "member", "seedauth-growth")
	create(t, fleet, member)

	enlarge := func() error {
		if err := get(member); err != nil {
			return err
		}
		changed := member.DeepCopy()
		changed.Spec.Provider.Workers[0].Minimum, changed.Spec.Provider.Workers[0].Maximum = 3, 3
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, fleetv1alpha1.GrownPoolsAnnotation,
			`{"pool":{"fleet":"fleet","growth":"g","minimum":1,"maximum":2}}`)
		return who.extension.Patch(ctx, changed,
			client.MergeFromWithOptions(member, client.MergeFromWithOptimisticLock{}))
	}
	extra := newShoot(who.namespace, "extra-1", "seedauth-growth", func(s *gardencorev1beta1.Shoot) {
		s.Labels = map[string]string{fleetv1alpha1.GrownByLabel: "fleet", fleetv1alpha1.GrownForLabel: "g"}
	})
	allow := func(value string) {
		t.Helper()
		if err := env.Client.Patch(ctx, fleet,
			merge(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fleetv1alpha1.AllowGrowthAnnotation,
				value))); err != nil {
			t.Fatal(err)
		}
	}
	forbidden := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it forbidden", what, err)
		}
	}
	forbidden("a pool is enlarged without leave", enlarge())
	forbidden("a shoot is created without leave", who.extension.Create(ctx, extra.DeepCopy()))
	allow("pools")
	eventually(t, enlarge)
	if err := get(member); err != nil || member.Spec.Provider.Workers[0].Minimum != 3 {
		t.Errorf("the pool has %d, %v", member.Spec.Provider.Workers[0].Minimum, err)
	}
	forbidden("a pool is changed without a record",
		who.extension.Patch(ctx, member.DeepCopy(), merge(`{"metadata":{"labels":{"a":"b"}}}`)))
	forbidden("a shoot is created where only pools may be enlarged", who.extension.Create(ctx, extra.DeepCopy()))
	allow("pools,shoots")
	eventually(t, func() error {
		if err := who.extension.Create(ctx, extra.DeepCopy()); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "spec.credentialsBindingName") {
			return fmt.Errorf("a shoot with credentials that the fleet was not given: %w", err)
		}
		return nil
	})
	if err := env.Client.Patch(ctx, fleet,
		merge(fmt.Sprintf(`{"metadata":{"annotations":{%q:"other, local"}}}`,
			fleetv1alpha1.GrowthCredentialsAnnotation))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return who.extension.Create(ctx, extra.DeepCopy()) })
	forbidden("a shoot of others is deleted", who.extension.Delete(ctx, member.DeepCopy()))
	if err := who.extension.Patch(ctx, extra,
		merge(fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`,
			gardencorev1beta1.ConfirmationDeletion))); err != nil {
		t.Errorf("the deletion is not confirmed: %v", err)
	}
	if err := who.extension.Delete(ctx, extra); err != nil {
		t.Errorf("the created shoot is not deleted: %v", err)
	}
	allow("")
	eventually(t, func() error {
		if err := enlarge(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the leave was taken back, and the answer is: %w", err)
		}
		return nil
	})
}
