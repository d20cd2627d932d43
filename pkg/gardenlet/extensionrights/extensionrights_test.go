package extensionrights

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const shoot = "shoot--demo--one"

// seedWith returns a seed with the namespace of a shoot, and objects.
func seedWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: shoot, Labels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot},
		},
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, namespace)...).Build()
}

// accepted is a ClusterRole as it is after gardenlet installed a chart.
func accepted(name, registration, resources, prefix string) *rbacv1.ClusterRole {
	annotations := map[string]string{resourcesAnnotation: resources, accountAnnotation: "account"}
	if prefix != "" {
		annotations[prefixAnnotation] = prefix
	}
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{LabelRegistration: registration}, Annotations: annotations,
		},
	}
}

func worker(extensionType string) *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot, Name: "w-" + extensionType},
		Spec:       extensionsv1alpha1.WorkerSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: extensionType}},
	}
}

// bound lists the roles that are bound in a namespace.
func bound(t *testing.T, seed client.Client, namespace string) []string {
	t.Helper()
	list := &rbacv1.RoleBindingList{}
	if err := seed.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, binding := range list.Items {
		who := "nobody"
		if len(binding.Subjects) > 0 {
			who = binding.Subjects[0].Namespace + "/" + binding.Subjects[0].Name
		}
		names = append(names, binding.RoleRef.Name+" for "+who)
	}
	return names
}

func wantBound(t *testing.T, seed client.Client, when, namespace string, want ...string) {
	t.Helper()
	if got := bound(t, seed, namespace); !slices.Equal(got, want) {
		t.Errorf("%s: in %s are bound %q, want %q", when, namespace, got, want)
	}
}

func TestOnlyKindsAndTypesOfTheRegistrationAreAccepted(t *testing.T) {
	accept := Accept("local", []gardencorev1beta1.ControllerResource{
		{Kind: "Worker", Type: "local"}, {Kind: "Network", Type: "local"},
	})
	for name, test := range map[string]struct {
		annotations  map[string]string
		registration string
		resources    string
		fails        bool
	}{
		"own": {
			map[string]string{resourcesAnnotation: "Worker/local, Network/local", accountAnnotation: "a"},
			"local", "Network/local,Worker/local", false,
		},
		"with others'": {
			map[string]string{resourcesAnnotation: "Worker/other,Worker/local", accountAnnotation: "a"}, "local",
			"Worker/local", false,
		},
		"only others'": {
			map[string]string{resourcesAnnotation: "Worker/other", accountAnnotation: "a"}, "", "Worker/other",
			false,
		},
		"none":       {nil, "", "", false},
		"no account": {map[string]string{resourcesAnnotation: "Worker/local"}, "local", "Worker/local", true},
		"prefix": {
			map[string]string{
				resourcesAnnotation: "Worker/local", accountAnnotation: "a", prefixAnnotation: "infra-",
			}, "local", "Worker/local", false,
		},
		"shoots' names": {
			map[string]string{
				resourcesAnnotation: "Worker/local", accountAnnotation: "a",
				prefixAnnotation: "shoot--x--",
			}, "local", "Worker/local", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetAPIVersion("rbac.authorization.k8s.io/v1")
			object.SetKind("ClusterRole")
			object.SetAnnotations(test.annotations)
			object.SetLabels(map[string]string{LabelRegistration: "other", "kept": "true"})
			if err := accept(object); (err != nil) != test.fails {
				t.Errorf("error %v", err)
			}
			if got := object.GetLabels(); got[LabelRegistration] != test.registration || got["kept"] != "true" {
				t.Errorf("labels are %v", got)
			}
			if got := object.GetAnnotations()[resourcesAnnotation]; got != test.resources {
				t.Errorf("serves %q, want %q", got, test.resources)
			}
		})
	}
}

func TestRightsFollowObjects(t *testing.T) {
	ctx := t.Context()
	seed := seedWith(t,
		accepted("local", "local", "Worker/local", ""), accepted("machines", "local", "Worker/local", "infra-"),
		accepted("other", "other", "Worker/other", ""))
	if err := Bind(ctx, seed, shoot, "Worker/local", true); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "before there is an object", shoot, "local for extension-local/account")
	wantBound(t, seed, "before there is an object", "infra-"+shoot, "machines for extension-local/account")
	object := worker("local")
	if err := seed.Create(ctx, object); err != nil {
		t.Fatal(err)
	}

	if err := seed.Create(ctx, accepted("later", "local", "Worker/local", "")); err != nil {
		t.Fatal(err)
	}
	if err := seed.Delete(ctx, accepted("local", "local", "", "")); err != nil {
		t.Fatal(err)
	}
	if err := Sync(ctx, seed); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "after another chart was installed", shoot, "later for extension-local/account")

	if err := Release(ctx, seed, shoot, "Worker", "local"); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "while there is an object", shoot, "later for extension-local/account")
	if err := seed.Delete(ctx, object); err != nil {
		t.Fatal(err)
	}
	if err := Release(ctx, seed, shoot, "Worker", "local"); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "after the last object", shoot)
	if err := seed.Get(ctx, client.ObjectKey{Name: "infra-" + shoot}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace beside is left: %v", err)
	}
}

// A Release that gardenlet's end interrupts leaves a note of what is going, and a Namespace that is not gone yet.
func TestRightsBesideANamespaceThatEnds(t *testing.T) {
	ctx := t.Context()
	seed := seedWith(t, accepted("local", "local", "Worker/local,Network/local", ""),
		accepted("machines", "local", "Worker/local", "infra-"))
	if err := Bind(ctx, seed, shoot, "Worker/local", true); err != nil {
		t.Fatal(err)
	}
	beside := &corev1.Namespace{}
	if err := seed.Get(ctx, client.ObjectKey{Name: "infra-" + shoot}, beside); err != nil {
		t.Fatal(err)
	}
	beside.Finalizers = []string{"example.com/pods"}
	if err := errors.Join(seed.Update(ctx, beside), seed.Delete(ctx, beside)); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(ctx, seed, shoot); err != nil {
		t.Errorf("when something else is removed: %v", err)
	}
	wantBound(t, seed, "when something else is removed", shoot, "local for extension-local/account")
	if err := Bind(ctx, seed, shoot, "Worker/local", true); err == nil || !strings.Contains(err.Error(), "not gone yet") {
		t.Errorf("when a worker is wanted again, error %v", err)
	}
}

// What a seed of before this package has is taken over once. Later, objects decide about nothing.
func TestNotesDecideOnceTheyAreThere(t *testing.T) {
	ctx := t.Context()
	seed := seedWith(t, accepted("local", "local", "Worker/local", ""), accepted("other", "other", "Worker/other", ""),
		worker("local"))
	if err := Sync(ctx, seed); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "without a note", shoot, "local for extension-local/account")
	if err := seed.Create(ctx, worker("other")); err != nil {
		t.Fatal(err)
	}
	if err := Sync(ctx, seed); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "with a note", shoot, "local for extension-local/account")
}

func TestNothingIsBoundOutsideOfShoots(t *testing.T) {
	ctx := t.Context()
	shootRole := map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot}
	seed := seedWith(t, accepted("local", "local", "Extension/local", ""),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden", Labels: shootRole}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--unlabelled"}})
	for _, namespace := range []string{"garden", "shoot--unlabelled", "shoot--absent", ""} {
		if err := Bind(ctx, seed, namespace, "Extension/local", true); err != nil {
			t.Fatal(err)
		}
		wantBound(t, seed, "always", namespace)
	}
}

func TestOneSecretOfGarden(t *testing.T) {
	ctx := t.Context()
	seed := seedWith(t, accepted("local", "local", "BackupBucket/local", ""),
		accepted("again", "local", "BackupBucket/local", ""), accepted("other", "other", "BackupBucket/other", ""))
	ref := corev1.SecretReference{Namespace: "garden", Name: "bucket-one"}
	for range 2 {
		if err := BindSecret(ctx, seed, "BackupBucket/local", ref); err != nil {
			t.Fatal(err)
		}
	}
	role := &rbacv1.Role{}
	if err := seed.Get(ctx, client.ObjectKeyFromObject(&rbacv1.Role{ObjectMeta: credentialsRole(ref)}),
		role); err != nil {
		t.Fatal(err)
	}
	if rule := role.Rules[0]; !slices.Equal(rule.ResourceNames, []string{"bucket-one"}) ||
		!slices.Equal(rule.Verbs, []string{"get"}) {
		t.Errorf("the rule is %+v", rule)
	}
	wantBound(t, seed, "with a bucket", "garden", role.Name+" for extension-local/account")
	if err := ReleaseSecret(ctx, seed, ref); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "without it", "garden")
}

// A bucket is mostly there before its extension, which must not fail for want of a right that comes a moment later.
func TestSecretsOfExtensionsThatComeLater(t *testing.T) {
	ctx := t.Context()
	seed := seedWith(t, accepted("other", "other", "BackupBucket/other", ""))
	ref := corev1.SecretReference{Namespace: "garden", Name: "bucket-one"}
	if err := BindSecret(ctx, seed, "BackupBucket/local", ref); err != nil {
		t.Fatal(err)
	}
	late := accepted("local", "local", "BackupBucket/local", "")
	if err := seed.Create(ctx, late); err != nil {
		t.Fatal(err)
	}
	if err := Sync(ctx, seed); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "with its extension", "garden", credentialsRole(ref).Name+" for extension-local/account")
	if err := seed.Delete(ctx, late); err != nil {
		t.Fatal(err)
	}
	if err := Sync(ctx, seed); err != nil {
		t.Fatal(err)
	}
	wantBound(t, seed, "without it", "garden", credentialsRole(ref).Name+" for nobody")
}
