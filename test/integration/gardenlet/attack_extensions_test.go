package gardenlet

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/images"
)

// Namespaces of shoots: one has objects of all our extensions, one a DNS record only, one nothing, and one an
// Infrastructure of others.
const (
	attackedShoot, attackedFleet, foreignShoot, otherProvider = "shoot--attack--all", "shoot--attack--record", "shoot--attack--none", "shoot--attack--other"
	machinesOfShoot                                           = "infra-" + attackedShoot
)

// right is something that an extension does or tries in a namespace.
type right struct{ namespace, verb, group, resource, name string }

func (r right) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s in %q", r.verb, r.resource, r.group, r.name, r.namespace))
}

// rights are those of verbs, separated by commas, on resources.
func rights(namespace, verbs, group string, resources ...string) []right {
	var all []right
	for _, resource := range resources {
		for _, verb := range strings.Split(verbs, ",") {
			all = append(all, right{namespace: namespace, verb: verb, group: group, resource: resource})
		}
	}
	return all
}

// needed is what our extensions call in the namespaces of their shoots.
func needed() map[string][]right {
	const write, machines = "get,create,patch,delete", "create,delete,deletecollection,get,list,patch,update,watch"
	join := func(lists ...[]right) []right {
		var all []right
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	return map[string][]right{
		"os-debian": rights(attackedShoot, write, "", "secrets"),
		"networking-flannel": join(
			rights(attackedShoot, write, "", "secrets"),
			rights(attackedShoot, write, "resources.gardener.cloud", "managedresources")),
		"extension-federation": join(
			rights(attackedShoot, write, "", "secrets", "services"),
			rights(attackedShoot, write, "apps", "deployments"),
			rights(attackedShoot, write, "networking.k8s.io", "networkpolicies")),
		"provider-local": join(
			rights(attackedShoot, write+",list", "", "secrets"), rights(attackedShoot, write, "", "serviceaccounts"),
			rights(attackedShoot, write, "apps", "deployments"),
			rights(attackedShoot, write, "rbac.authorization.k8s.io", "roles", "rolebindings"),
			rights(attackedShoot, write, "resources.gardener.cloud", "managedresources"),
			rights(attackedShoot, machines, "machine.sapcloud.io", "machines", "machinesets", "machinedeployments",
				"machineclasses"),
			rights("", "list", "", "nodes"),
			rights("", "get,list,watch", "machine.sapcloud.io", "machines", "machinesets", "machinedeployments",
				"machineclasses"),
			rights(machinesOfShoot, write, "rbac.authorization.k8s.io", "roles", "rolebindings"),
			rights(machinesOfShoot, "list,deletecollection", "", "pods"),
			rights(attackedFleet, "get", "", "secrets"),
			[]right{
				{"local-cloud", "get", "", "secrets", "local-cloud"}, {"garden", "get", "", "secrets", "bucket-attack"},
			}),
	}
}

// refused is what none of our extensions may do.
func refused(name string) []right {
	all := []right{{"garden", "get", "", "secrets", "entry-attack"}}
	elsewhere := []string{"", "garden", "kube-system", foreignShoot, otherProvider, "extension-attacked"}
	if name != "provider-local" {
		elsewhere = append(elsewhere, attackedFleet, machinesOfShoot)
	}
	for _, namespace := range elsewhere {
		all = append(all, rights(namespace, "get,list,watch,create,update,patch,delete", "", "secrets")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "", "pods", "serviceaccounts", "services")...)
		all = append(all, rights(namespace, "create", "", "serviceaccounts/token", "pods/exec")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "apps", "deployments")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "resources.gardener.cloud",
			"managedresources")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "rbac.authorization.k8s.io", "roles",
			"rolebindings")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "machine.sapcloud.io", "machines")...)
	}
	all = append(all, rights("", "create,update,patch,delete", "rbac.authorization.k8s.io", "clusterroles",
		"clusterrolebindings")...)
	all = append(all, rights("", "create,update,patch,delete", "", "namespaces", "nodes")...)
	return append(all, rights("", "create,update,patch,delete", "extensions.gardener.cloud", "clusters")...)
}

// An extension that is taken over has what it needs for the objects of its kinds and types, and nothing of the seed
// beside that.
func TestAttackExtensionBeyondItsShoots(t *testing.T) {
	seed := seedWithExtensions(t)
	attackers := map[string]client.WithWatch{}
	for _, e := range images.Extensions {
		attackers[e.Name] = accountOf(t, seed, e.Name)
	}
	shoots(t, seed)
	for name, attacker := range attackers {
		t.Run(name, func(t *testing.T) {
			for _, r := range needed()[name] {
				eventually(t, func() error { return mayDo(attacker, r, true) })
			}
			for _, r := range refused(name) {
				if err := mayDo(attacker, r, false); err != nil {
					t.Error(err)
				}
			}
			takesOverTheSeed(t, attacker)
		})
	}
	t.Run("work is done with these rights", func(t *testing.T) { extensionsWork(t, seed) })
	t.Run("the last object takes the rights along", func(t *testing.T) {
		for _, name := range []string{attackedShoot, attackedFleet} {
			bindings := &rbacv1.RoleBindingList{}
			if err := seed.List(t.Context(), bindings, client.InNamespace(name),
				client.HasLabels{extensionrights.LabelRegistration}); err != nil {
				t.Fatal(err)
			}
			for _, binding := range bindings.Items {
				t.Errorf("%s is left in %s", binding.Name, name)
			}
		}
		namespace := &corev1.Namespace{}
		if err := seed.Get(t.Context(), client.ObjectKey{Name: machinesOfShoot}, namespace); err == nil &&
			namespace.DeletionTimestamp == nil {
			t.Errorf("namespace %s is left", machinesOfShoot)
		}
	})
}

// An extension may write into objects of its kinds wherever they are; what it writes gives it no rights.
func TestAttackExtensionTakesObjectsOfOthers(t *testing.T) {
	ctx, seed := t.Context(), seedWithExtensions(t)
	attacker := accountOf(t, seed, "provider-local")
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: otherProvider, Name: "other"}}
	shootNamespace(t, seed, otherProvider)
	if err := extension.Deploy(ctx, seed, object, false,
		func() { object.Spec.Type, object.Spec.Region = "other", "r" }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = seed.Delete(context.Background(), object) })
	stolen := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"type":"local"}}`))
	if err := attacker.Patch(ctx, object, stolen); err != nil {
		t.Fatal(err)
	}
	if err := extensionrights.Sync(ctx, seed); err != nil {
		t.Fatal(err)
	}
	if err := extensionrights.Ensure(ctx, seed, otherProvider); err != nil {
		t.Fatal(err)
	}
	for _, r := range rights(otherProvider, "get,create", "", "secrets") {
		if err := mayDo(attacker, r, false); err != nil {
			t.Error(err)
		}
	}
}

// mayDo tells if a right is not as wanted.
func mayDo(account client.Client, r right, wanted bool) error {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource,
			Name: r.name,
		}},
	}
	if err := account.Create(context.Background(), review); err != nil {
		return err
	}
	if review.Status.Allowed != wanted {
		return fmt.Errorf("%s: allowed is %v, want %v (%s)", r, review.Status.Allowed, wanted, review.Status.Reason)
	}
	return nil
}

// takesOverTheSeed tries the ways to all rights.
func takesOverTheSeed(t *testing.T, attacker client.Client) {
	t.Helper()
	admin := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, RoleRef: admin},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "attack"}, RoleRef: admin},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: attackedShoot, Name: "attack"}, RoleRef: admin},
		&resourcesv1alpha1.ManagedResource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "attack"},
			Spec: resourcesv1alpha1.ManagedResourceSpec{
				Class:      new(resourcesv1alpha1.ClassSeed),
				SecretRefs: []corev1.LocalObjectReference{{Name: "bucket-attack"}},
			},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: foreignShoot, Name: "attack"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attack"}},
	} {
		if err := attacker.Create(t.Context(), object); !apierrors.IsForbidden(err) {
			t.Errorf("creating %T in %q: %v, want it forbidden", object, object.GetNamespace(), err)
		}
	}
	for _, namespace := range []string{"garden", "extension-attacked", foreignShoot} {
		if err := attacker.List(t.Context(), &corev1.SecretList{},
			client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("listing Secrets in %s: %v, want it forbidden", namespace, err)
		}
	}
	annotations := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+extensionsv1alpha1.AnnotationRoleResources+`":"Infrastructure/other"}}}`))
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: otherProvider}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "extensions.trellis.garden:os-debian:shoot"}},
	} {
		if err := attacker.Patch(t.Context(), object, annotations); !apierrors.IsForbidden(err) {
			t.Errorf("annotating %T: %v, want it forbidden", object, err)
		}
	}
}
