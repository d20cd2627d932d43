package shootstate

import (
	"context"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/machinestate"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const namespace = "shoot--demo--member1"

var identity = plan.Identity{
	Namespace: namespace, ShootName: "member1", ShootNamespace: "garden-demo", ProjectName: "demo", UID: "uid",
}

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme,
		machinev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// member1 is a shoot on the seed one whose last operation is of a type.
func member1(operation gardencorev1beta1.LastOperationType, change ...func(*gardencorev1beta1.Shoot)) client.Object {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		Spec: gardencorev1beta1.ShootSpec{
			SeedName: new("one"),
			Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "pool"}}},
		},
		Status: gardencorev1beta1.ShootStatus{
			SeedName: new("one"), TechnicalID: namespace,
			LastOperation: &gardencorev1beta1.LastOperation{
				Type: operation, State: gardencorev1beta1.LastOperationStateProcessing,
			},
		},
	}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func authority(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-12345678", Labels: map[string]string{
				secrets.LabelManagedBy: secrets.LabelManagedByValue, secrets.LabelManagerIdentity: "gardenlet",
				secrets.LabelName: name, secrets.LabelChecksum: "12345678",
			},
		},
		Data: map[string][]byte{secrets.DataKeyCertificateCA: []byte("c"), secrets.DataKeyPrivateKeyCA: []byte("k")},
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// controlPlane is what lies in the namespace of a shoot.
func controlPlane() []client.Object {
	ownedBy := func(name, owner string) metav1.ObjectMeta {
		meta := named(name)
		meta.OwnerReferences = []metav1.OwnerReference{{Name: owner, Controller: new(true)}}
		return meta
	}
	infrastructure := &extensionsv1alpha1.Infrastructure{ObjectMeta: named("member1")}
	infrastructure.Status.State = &runtime.RawExtension{Raw: []byte(`{"network":"n"}`)}
	worker := &extensionsv1alpha1.Worker{ObjectMeta: named("member1")}
	worker.Status.State = &runtime.RawExtension{Raw: []byte(`{"machineDeployments":{"former":{"replicas":7}}}`)}
	return []client.Object{
		authority("ca"), authority("ca-client"),
		&corev1.Secret{ObjectMeta: named("cloudprovider"), Data: map[string][]byte{"token": []byte("t")}},
		infrastructure, worker,
		&machinev1alpha1.MachineDeployment{
			ObjectMeta: named("pool"), Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: 1},
		},
		&machinev1alpha1.MachineSet{ObjectMeta: ownedBy("pool-1", "pool")},
		&machinev1alpha1.Machine{
			ObjectMeta: ownedBy("pool-1-a", "pool-1"), Spec: machinev1alpha1.MachineSpec{ProviderID: "cloud:///a"},
		},
	}
}

// keptBy is the ShootState after a look at the shoot; nil if there is none.
func keptBy(t *testing.T, garden, seed client.Client) *gardencorev1beta1.ShootState {
	t.Helper()
	keeper := &Keeper{Garden: garden, Seed: seed, SeedName: "one", Period: time.Minute}
	key := client.ObjectKey{Namespace: "garden-demo", Name: "member1"}
	result, err := keeper.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("it ends with %v, %v", result, err)
	}
	state := &gardencorev1beta1.ShootState{}
	err = garden.Get(t.Context(), key, state)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return state
}

// What one seed has kept, another reads: authorities and keys, machines, and what extensions asked for.
func TestFromSeedToSeed(t *testing.T) {
	garden := newClient(t, member1(gardencorev1beta1.LastOperationTypeReconcile))
	state := keptBy(t, garden, newClient(t, controlPlane()...))
	if errs := gardencorev1beta1.ValidateShootState(state); len(errs) > 0 {
		t.Error(errs)
	}
	if again := keptBy(t, garden, newClient(t, controlPlane()...)); again.ResourceVersion != state.ResourceVersion {
		t.Error("a second look writes what has not changed")
	}
	for _, extension := range state.Spec.Extensions {
		if extension.Kind == "Worker" {
			t.Error("what the Worker was restored with before is kept beside its machines of now")
		}
	}
	restored, err := Read(t.Context(), garden, identity)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, secret := range restored.Secrets {
		names = append(names, secret.Namespace+"/"+secret.Name+" "+string(secret.Data[secrets.DataKeyPrivateKeyCA]))
	}
	want := namespace + "/ca-12345678 k, " + namespace + "/ca-client-12345678 k"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("restored are %s, want %s", got, want)
	}
	infrastructure := restored.States[extension.StateKey{Kind: "Infrastructure", Name: "member1"}]
	if infrastructure == nil || string(infrastructure.Raw) != `{"network":"n"}` {
		t.Errorf("the state of the Infrastructure is %s", infrastructure)
	}
	worker := restored.States[extension.StateKey{Kind: "Worker", Name: "member1"}]
	if worker == nil {
		t.Fatal("the Worker has no state")
	}
	machines, err := machinestate.Decode(worker.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if pool := machines.MachineDeployments["pool"]; pool == nil || pool.Replicas != 1 || len(pool.Machines) != 1 ||
		pool.Machines[0].Spec.ProviderID != "cloud:///a" {
		t.Errorf("the machines are %+v", pool)
	}
}

// The garden is not asked again and again for what has not changed, and told at once of what has.
func TestUnchangedStates(t *testing.T) {
	garden := newClient(t, member1(gardencorev1beta1.LastOperationTypeReconcile))
	asked := 0
	counting := interceptor.NewClient(garden.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			o ...client.GetOption) error {
			if _, ok := object.(*gardencorev1beta1.ShootState); ok {
				asked++
			}
			return c.Get(ctx, key, object, o...)
		},
	})
	seed := newClient(t, controlPlane()...)
	keeper := &Keeper{Garden: counting, Seed: seed, SeedName: "one", Period: time.Minute}
	look := func() int {
		t.Helper()
		before := asked
		request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "garden-demo", Name: "member1"}}
		if _, err := keeper.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		return asked - before
	}
	first, unchanged := look(), look()
	if err := seed.Create(t.Context(), authority("ca-etcd")); err != nil {
		t.Fatal(err)
	}
	if changed := look(); first != 1 || unchanged != 0 || changed != 1 {
		t.Errorf("asked %d times at first, %d times later, %d times after a change", first, unchanged, changed)
	}
}

// Only the seed that has all of a control plane writes, and nothing but what is there.
func TestWhoKeeps(t *testing.T) {
	reconciled := gardencorev1beta1.LastOperationTypeReconcile
	for what, test := range map[string]struct {
		shoot client.Object
		keeps bool
	}{
		"hosted here": {member1(reconciled), true},
		"restored here": {
			member1(gardencorev1beta1.LastOperationTypeRestore), false,
		},
		"moved away": {
			member1(reconciled, func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("two") }), false,
		},
		"not there yet": {
			member1(reconciled, func(s *gardencorev1beta1.Shoot) { s.Status.SeedName = new("two") }), false,
		},
		"being deleted": {member1(reconciled, func(s *gardencorev1beta1.Shoot) {
			s.DeletionTimestamp, s.Finalizers = new(metav1.Now()), []string{"gardener"}
		}), false},
	} {
		kept := keptBy(t, newClient(t, test.shoot), newClient(t, controlPlane()...)) != nil
		if kept != test.keeps {
			t.Errorf("%s: kept is %v", what, kept)
		}
	}
}

// A namespace that has lost its secrets does not have the garden forget them.
func TestLossIsNotKept(t *testing.T) {
	garden := newClient(t, member1(gardencorev1beta1.LastOperationTypeReconcile))
	before := keptBy(t, garden, newClient(t, controlPlane()...))
	keeper := &Keeper{Garden: garden, Seed: newClient(t), SeedName: "one", Period: time.Minute}
	key := client.ObjectKeyFromObject(before)
	_, err := keeper.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err == nil || !strings.Contains(err.Error(), "the ShootState stays") {
		t.Errorf("want an error, got %v", err)
	}
	after := &gardencorev1beta1.ShootState{}
	if err := garden.Get(t.Context(), key, after); err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the state was changed: %v", err)
	}
}

func TestRemove(t *testing.T) {
	garden := newClient(t, member1(gardencorev1beta1.LastOperationTypeReconcile))
	keptBy(t, garden, newClient(t, controlPlane()...))
	for range 2 {
		if err := Remove(t.Context(), garden, identity); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(t.Context(), garden, identity); err == nil ||
		!strings.Contains(err.Error(), "cannot be restored") {
		t.Errorf("want an error, got %v", err)
	}
}

// A hostile seed has written the state of a shoot that another one restores.
func TestAttackState(t *testing.T) {
	type spec = gardencorev1beta1.ShootStateSpec
	secret := func(name, data string, labels map[string]string) gardencorev1beta1.GardenerResourceData {
		return gardencorev1beta1.GardenerResourceData{
			Name: name, Type: typeSecret, Data: runtime.RawExtension{Raw: []byte(data)}, Labels: labels,
		}
	}
	good := secret("ca-12345678", `{"ca.key":"aw=="}`, authority("ca").Labels)
	if _, err := restoredOf(&spec{Gardener: []gardencorev1beta1.GardenerResourceData{good}}, identity); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		spec spec
		want string
	}{
		"nothing": {spec{}, "no authorities and keys"},
		"a Secret of gardenlet's": {
			spec{Gardener: []gardencorev1beta1.GardenerResourceData{
				good, secret("cloudprovider", `{"ca.key":"aw=="}`, authority("ca").Labels),
			}}, "no secret that gardenlet keeps",
		},
		"a Secret with other labels": {
			spec{Gardener: []gardencorev1beta1.GardenerResourceData{
				good, secret("ca-12345678", `{"ca.key":"aw=="}`, map[string]string{"a": "b"}),
			}}, "no secret that gardenlet keeps",
		},
		"no data": {
			spec{Gardener: []gardencorev1beta1.GardenerResourceData{
				secret("ca-12345678", `[]`, authority("ca").Labels),
			}}, "cannot unmarshal",
		},
		"another type": {
			spec{Gardener: []gardencorev1beta1.GardenerResourceData{{Name: "x", Type: "pod"}}}, `type "pod"`,
		},
		"objects of others": {
			spec{Extensions: []gardencorev1beta1.ExtensionResourceState{{
				Kind: "Infrastructure", Name: new("member1"),
				Resources: []gardencorev1beta1.NamedResourceReference{{Name: "etcd"}},
			}}}, "such as etcd, which are not kept",
		},
	} {
		if _, err := restoredOf(&test.spec, identity); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want an error about %q, got %v", what, test.want, err)
		}
	}
}
