package gardenlet

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/managedresource"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

const hostileManifests = `
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: shoot--evil--one}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: stray, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: evil}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: extension-evil, name: evil}]
`

// Who may write ManagedResources in the namespace of a shoot, as its extensions may, must get nothing beyond it by
// those of class seed.
func TestAttackManagedResourceOfClassSeed(t *testing.T) {
	const namespace = "shoot--evil--one"
	ctx, admin := t.Context(), seedForManagedResources(t)
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "extension-evil", Name: "evil"}
	for _, object := range []client.Object{
		&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name: namespace, Labels: map[string]string{
					gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot,
				},
			},
		},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evil"}, Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{"", "resources.gardener.cloud"}, Resources: []string{"secrets", "managedresources"},
				Verbs: []string{"create", "delete"},
			},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evil"}, Subjects: []rbacv1.Subject{account},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "evil"},
		},
	} {
		if err := admin.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	config, err := env.ConfigFor(env.Config.Host, "system:serviceaccount:extension-evil:evil", "system:serviceaccounts",
		"system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	attacker, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evil"},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class: new(resourcesv1alpha1.ClassSeed), SecretRefs: []corev1.LocalObjectReference{{Name: "evil"}},
		},
	}
	secret := &corev1.Secret{ObjectMeta: mr.ObjectMeta, StringData: map[string]string{"objects.yaml": hostileManifests}}
	for _, object := range []client.Object{secret, mr.DeepCopy()} {
		if err := attacker.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	// What is in the status was applied before, and is deleted when it is no longer wanted.
	prize := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "prize"}}
	if err := admin.Create(ctx, prize); err != nil {
		t.Fatal(err)
	}
	stored := mr.DeepCopy()
	if err := admin.Get(ctx, client.ObjectKeyFromObject(mr), stored); err != nil {
		t.Fatal(err)
	}
	stored.Status.Resources = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: prize.Namespace, Name: prize.Name,
	}}}
	if err := admin.Status().Update(ctx, stored); err != nil {
		t.Fatal(err)
	}
	targets, err := target.NewRegistry(env.Config, admin)
	if err != nil {
		t.Fatal(err)
	}
	reconciler := &managedresource.Reconciler{
		Client: admin, Reader: admin, Targets: targets, ClusterID: "seed", SyncPeriod: time.Minute,
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(mr)}
	if _, err := reconciler.Reconcile(ctx, request); !apierrors.IsForbidden(err) &&
		(err == nil || !strings.Contains(err.Error(), "forbidden")) {
		t.Errorf("nothing was forbidden: %v", err)
	}

	if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "own"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("what lies in the own namespace must be applied: %v", err)
	}
	if err := admin.Get(ctx, client.ObjectKeyFromObject(prize), prize); err != nil || prize.DeletionTimestamp != nil {
		t.Errorf("what the status names elsewhere must stay: %v", err)
	}
	for name, object := range map[client.ObjectKey]client.Object{
		{Namespace: metav1.NamespaceSystem, Name: "stray"}: &corev1.ConfigMap{},
		{Name: "evil"}: &rbacv1.ClusterRoleBinding{},
	} {
		if err := admin.Get(ctx, name, object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s was applied (%v)", object, name, err)
		}
	}
	if err := admin.Get(ctx, request.NamespacedName, mr); err != nil {
		t.Fatal(err)
	}
	applied := conditions.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if applied == nil || !strings.Contains(applied.Message, "system:serviceaccount:"+namespace+":"+target.SeedAccount) {
		t.Errorf("the condition does not tell whose rights do not suffice: %+v", applied)
	}
}

// seedForManagedResources makes the API server one that knows ManagedResources, and returns a client with all rights.
func seedForManagedResources(t *testing.T) client.Client {
	t.Helper()
	s := scheme(t)
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(env.Config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	role, definition := &rbacv1.ClusterRole{}, &apiextensionsv1.CustomResourceDefinition{}
	readChart(t, "crds/seed/resources.gardener.cloud_managedresources.yaml", 0, definition)
	readChart(t, "resource-manager/templates/rbac.yaml", 1, role)
	for _, object := range []client.Object{definition, role} {
		if err := admin.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	eventually(t, func() error { return admin.List(context.Background(), &resourcesv1alpha1.ManagedResourceList{}) })
	return admin
}

// readChart reads the nth document of a file of the charts.
func readChart(t *testing.T, path string, n int, into runtime.Object) {
	t.Helper()
	text, err := charts.FS.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal([]byte(strings.Split(strings.TrimPrefix(string(text), "---\n"), "\n---\n")[n]), into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
