package federation

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
)

// An application team may bind a weak role of the fleet. The member has a strong one of the same name.
func TestAttackBindsRolesOfAMember(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	alice := w.asTenant(t, namespace)
	w.grant(t, namespace, rbacv1.GroupName, "create", "delete", "get", "patch", "update")
	strong := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "steward-" + namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	weak := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: strong.Name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
		},
	}
	create := func(c client.Client, role *rbacv1.ClusterRole) {
		if err := c.Create(ctx, role); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, role) })
	}
	create(w.fleet, weak)
	create(w.member["member1"], strong)
	apply(t, alice, namespace, parse(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: crown}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: rights}
spec:
  resourceSelectors:
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: reader}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: crown}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: readers}
  placement: {clusterAffinity: {clusterNames: [member1]}}
`, strong.Name))...)
	arrived := func(name string) error {
		return w.member["member1"].Get(ctx, types.NamespacedName{Namespace: namespace, Name: name},
			&rbacv1.RoleBinding{})
	}
	eventually(t, "a role that came from the fleet is bound", func() error { return arrived("readers") })
	eventually(t, "the fleet says why another is not", func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "crown-rolebinding"},
			b); err != nil {
			return err
		}
		for _, item := range b.Status.AggregatedStatus {
			if !item.Applied && strings.Contains(item.AppliedMessage, "the member's own role") {
				return nil
			}
		}
		return fmt.Errorf("got %+v", b.Status.AggregatedStatus)
	})
	if err := wantGone(arrived("crown")); err != nil {
		t.Errorf("alice is steward of member1: %v", err)
	}
	before := strong.DeepCopy()
	metav1.SetMetaDataLabel(&strong.ObjectMeta, controllers.BindableLabel, "true")
	if err := w.member["member1"].Patch(ctx, strong, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	// What somebody has to do something about is tried again now and then; a change of the template does so at once.
	crown := &rbacv1.RoleBinding{}
	if err := alice.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "crown"}, crown); err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataLabel(&crown.ObjectMeta, "tried", "again")
	if err := alice.Update(ctx, crown); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the member's owner lets it be bound", func() error { return arrived("crown") })
	if err := alice.Delete(ctx, crown); err != nil {
		t.Fatal(err)
	}
}
