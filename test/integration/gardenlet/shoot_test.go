package gardenlet

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
	"github.com/trellis-garden/trellis/pkg/vpn/gateway"
)

func TestGardenlet(t *testing.T) {
	var err error
	if c, err = client.New(env.Config, client.Options{Scheme: scheme(t)}); err != nil {
		t.Fatal(err)
	}
	startGarden(t)
	prepareGarden(t)
	playCluster(t)
	stopGardenlet := startGardenlet(t)
	holder := leaderOtherThan(t, c, gardenletLease, "")
	startGardenlet(t) // It stands by until the end of the other one.
	startSeed(t)
	t.Run("seed is registered and ready", testSeed)
	first := gardenletOfSeed(t)
	t.Run("shoot with workers", testShoot)
	t.Run("fleet", testFleet)
	t.Run("an emergency stop", testEmergencyStop)
	t.Run("hibernation", testHibernation)
	t.Run("workload identities and internal secrets", testCredentials)
	t.Run("backup buckets and entries", testBackup)
	t.Run("mistakes are told", testMistake)
	t.Run("a shoot becomes a seed", testManagedSeed)
	t.Run("gardenlet deploys itself", testSelfDeployment)
	t.Run("an extension in use stays", testExtensionStays)
	t.Run("one of two gardenlets ends in the middle of a creation", func(t *testing.T) {
		testOneGardenletWorks(t, holder, first, stopGardenlet)
	})
}

// gardenletLease is that of the gardenlet that works.
const gardenletLease = "gardenlet-leader"

// prepareGarden creates what operators create.
func prepareGarden(t *testing.T) {
	t.Helper()
	eventually(t, func() error { return get(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}) })
	create(t, &corev1.Secret{ObjectMeta: readable("dns")})
	registerExtensions(t)
	for _, name := range []string{"cloudprofile", "project"} {
		for _, object := range load(t, filepath.Join("..", "..", "..", "landscape", "local", "garden", name+".yaml")) {
			create(t, object)
		}
	}
	eventually(t, func() error {
		err := c.Create(context.Background(),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "local"}})
		return client.IgnoreAlreadyExists(err)
	})
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "local"},
		Provider:   securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: "garden-demo", Name: "local",
		},
	}
	if err := client.IgnoreAlreadyExists(c.Create(context.Background(), binding)); err != nil {
		t.Fatal(err)
	}
}

func testSeed(t *testing.T) {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	eventually(t, func() error {
		if err := get(seed); err != nil {
			return err
		}
		for _, wanted := range []gardencorev1beta1.ConditionType{
			gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.SeedSystemComponentsHealthy,
			gardencorev1beta1.SeedExtensionsReady,
		} {
			if !conditions.IsTrue(seed.Status.Conditions, wanted) {
				return fmt.Errorf("%s is not True: %+v", wanted, conditions.Get(seed.Status.Conditions, wanted))
			}
		}
		if last := seed.Status.LastOperation; last == nil ||
			last.State != gardencorev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})
	if seed.Status.KubernetesVersion == nil ||
		seed.Status.Allocatable[gardencorev1beta1.ResourceShoots] !=
			*new(seed.Status.Capacity[gardencorev1beta1.ResourceShoots]) {
		t.Errorf("status is %+v", seed.Status)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-seed-lease", Name: "local"},
	}
	if err := get(lease); err != nil || time.Since(lease.Spec.RenewTime.Time) > 30*time.Second {
		t.Errorf("lease: %v, %+v", err, lease.Spec)
	}
	for _, class := range component.SeedPriorityClasses() {
		if err := get(class); err != nil {
			t.Errorf("priority classes of the seed: %v", err)
		}
	}
	if err := get(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "resource-manager"},
	}); err != nil {
		t.Error(err)
	}
}

func testShoot(t *testing.T) {
	shoot := example(t, "shoot-member1")
	shoot.Annotations = map[string]string{gardencorev1beta1.ShootSkipReadiness: "true"}
	machines := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   "infra-shoot--demo--member1",
		Labels: map[string]string{extensionrights.LabelShootNamespace: "shoot--demo--member1"},
	}}
	create(t, machines, shoot)
	started := time.Now()
	succeeded(t, shoot)
	t.Logf("created in %s", time.Since(started))
	operationIsTold(t, shoot)

	status := shoot.Status
	if status.TechnicalID != "shoot--demo--member1" ||
		status.LastOperation.Type != gardencorev1beta1.LastOperationTypeCreate ||
		len(status.AdvertisedAddresses) != 2 ||
		status.ClusterIdentity == nil || status.Networking.Nodes[0] != "10.180.9.0/24" || len(status.LastErrors) > 0 {
		t.Errorf("status is %+v", status)
	}
	for _, object := range []client.Object{
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "etcd-main"}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "etcd-events"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "vpn-seed-server"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cloudprovider"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "gardener-internal"}},
		&extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Name: "member1-internal"}},
		&extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Name: "member1"}},
	} {
		object.SetNamespace(status.TechnicalID)
		if err := get(object); err != nil {
			t.Error(err)
		}
	}
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: status.TechnicalID, Name: "member1"}}
	if err := get(worker); err != nil {
		t.Fatal(err)
	}
	if string(worker.Spec.InfrastructureProviderStatus.Raw) != `{"network":"n1"}` ||
		!strings.HasSuffix(worker.Spec.Pools[0].UserDataSecretRef.Name, "-init") {
		t.Errorf("worker is %+v", worker.Spec)
	}
	if err := get(&networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: machines.Name, Name: "deny-all"},
	}); err != nil {
		t.Errorf("where machines are pods: %v", err)
	}
	kubeconfigIsServed(t, shoot)
	changeIsTakenOver(t, shoot)
	heldControllersStayStopped(t, shoot)
	namespaceHasHostsAndKey(t, shoot)
	credentialsAreRotated(t, shoot)
	deleted(t, shoot)
}

// namespaceHasHostsAndKey is what the gateway asks for, also after the namespace was applied once more.
func namespaceHasHostsAndKey(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shoot.Status.TechnicalID}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: "vpn-seed-server"},
	}
	for _, object := range []client.Object{namespace, service} {
		if err := get(object); err != nil {
			t.Fatal(err)
		}
	}
	grants := gateway.BuildGrants("garden", []*corev1.Namespace{namespace})
	if _, failed := gateway.BuildServers([]*corev1.Service{service},
		grants); failed[client.ObjectKeyFromObject(service).String()] != nil ||
		namespace.Annotations[vpnv1alpha1.AnnotationPublicKey] == "" {
		t.Errorf("the namespace has annotations %v; refused is %v", namespace.Annotations, failed)
	}
	for _, address := range shoot.Status.AdvertisedAddresses {
		host := strings.TrimPrefix(address.URL, "https://")
		if err := grants.Host(namespace.Name, host); err != nil ||
			!strings.Contains(namespace.Annotations[vpnv1alpha1.AnnotationHosts], host) {
			t.Errorf("the namespace has annotations %v: %v", namespace.Annotations, err)
		}
	}
}

// kubeconfigIsServed requests an administrator's kubeconfig in the garden.
func kubeconfigIsServed(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name + ".ca-cluster"}},
		&gardencorev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name + ".ca-client"},
		},
	} {
		if err := get(object); err != nil {
			t.Error(err)
		}
	}
}

// changeIsTakenOver changes the shoot after its creation.
func changeIsTakenOver(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		shoot.Spec.Provider.Workers[0].Maximum = 3
		return c.Update(context.Background(), shoot)
	})
	succeeded(t, shoot)
	worker := &extensionsv1alpha1.Worker{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: shoot.Name},
	}
	if err := get(worker); err != nil || worker.Spec.Pools[0].Maximum != 3 {
		t.Errorf("worker has maximum %d (%v)", worker.Spec.Pools[0].Maximum, err)
	}
	if shoot.Status.LastOperation.Type != gardencorev1beta1.LastOperationTypeReconcile {
		t.Errorf("operation is %s", shoot.Status.LastOperation.Type)
	}
	// A pool may grow now.
	autoscaler := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: "cluster-autoscaler"},
	}
	if err := get(autoscaler); err != nil {
		t.Fatal(err)
	}
	if arguments, want := autoscaler.Spec.Template.Spec.Containers[0].Args,
		"--nodes=1:3:"+autoscaler.Namespace+".pool-z1"; !slices.Contains(arguments, want) {
		t.Errorf("the cluster-autoscaler gets %q, want %q", arguments, want)
	}
}

func testFleet(t *testing.T) {
	shoot := example(t, "shoot-fleet")
	create(t, shoot)
	// It is deleted in the middle of its creation: nothing may be left.
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		if shoot.Status.TechnicalID == "" {
			return fmt.Errorf("not begun")
		}
		return nil
	})
	deleted(t, shoot)
}

// testExtensionStays tries to take away an extension that a shoot uses, by deletion and by a change of its type.
func testExtensionStays(t *testing.T) {
	registration := func() *gardencorev1beta1.ControllerRegistration {
		return &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "leaving"},
			Spec: gardencorev1beta1.ControllerRegistrationSpec{
				Resources: []gardencorev1beta1.ControllerResource{
					{Kind: "Extension", Type: "leaving", WorkerlessSupported: new(true)},
				},
			}}
	}
	create(t, registration())
	shoot := example(t, "shoot-fleet")
	shoot.Name = "leaver"
	shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "leaving"}}
	create(t, shoot)
	err := c.Delete(context.Background(), registration())
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "leaver") {
		t.Errorf("deletion: error = %v, want it to name the shoot that uses the extension", err)
	}
	err = offer(t, "leaving", "something else")
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.resources") ||
		!strings.Contains(err.Error(), "leaver") {
		t.Errorf("change: error = %v, want it to name the field, and the shoot that uses the extension", err)
	}
	deleted(t, shoot)
	if err := offer(t, "leaving", "something else"); err != nil {
		t.Errorf("when no shoot uses it: %v", err)
	}
	if err := c.Delete(context.Background(), registration()); err != nil {
		t.Error(err)
	}
}

// offer changes the type of what a registration offers, and returns what the API says to it.
func offer(t *testing.T, name, extensionType string) error {
	t.Helper()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := get(registration); err != nil {
			return err
		}
		registration.Spec.Resources[0].Type = extensionType
		return c.Update(context.Background(), registration)
	})
}

// testOneGardenletWorks ends the one of two gardenlets that has worked so far while it creates a shoot. The other one,
// which has done nothing, goes on. The test's own workloads get ready slowly enough for that.
func testOneGardenletWorks(t *testing.T, holder, first string, stopGardenlet func()) {
	shoot := example(t, "shoot-member2")
	shoot.Annotations = map[string]string{gardencorev1beta1.ShootSkipReadiness: "true"}
	create(t, shoot)
	eventually(t, func() error {
		return get(&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--member2", Name: "etcd-main"},
		})
	})
	if got := leaderOtherThan(t, c, gardenletLease, ""); got != holder || gardenletOfSeed(t) != first {
		t.Errorf("%s has the lease and %s tells of the seed, it was %s, and %s", got, gardenletOfSeed(t), holder, first)
	}
	stopGardenlet()
	if err := get(shoot); err != nil ||
		shoot.Status.LastOperation.State != gardencorev1beta1.LastOperationStateProcessing {
		t.Fatalf("gardenlet ended too late: %+v (%v)", shoot.Status.LastOperation, err)
	}
	leaderOtherThan(t, c, gardenletLease, holder)
	succeeded(t, shoot)
	eventually(t, func() error {
		if gardenletOfSeed(t) == first {
			return fmt.Errorf("gardenlet %s still tells of the seed", first)
		}
		return nil
	})
	deleted(t, shoot)
}

// gardenletOfSeed is the identity of the gardenlet that tells of the seed.
func gardenletOfSeed(t *testing.T) string {
	t.Helper()
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	if err := get(seed); err != nil || seed.Status.Gardener == nil {
		t.Fatalf("the seed has no gardenlet: %v", err)
	}
	return seed.Status.Gardener.ID
}

func testMistake(t *testing.T) {
	shoot := example(t, "shoot-fleet")
	shoot.Name = "mistake"
	shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "nothere"}}
	err := c.Create(context.Background(), shoot)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.extensions[0].type") ||
		!strings.Contains(err.Error(), `"nothere"`) {
		t.Errorf("error = %v, want it to name the extension that nobody offers", err)
	}
}

// succeeded waits until the latest generation has been reconciled.
func succeeded(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		last := shoot.Status.LastOperation
		if last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded ||
			shoot.Status.ObservedGeneration != shoot.Generation {
			return fmt.Errorf("generation %d, observed %d, operation %+v, errors %+v, seed %v", shoot.Generation,
				shoot.Status.ObservedGeneration, last, shoot.Status.LastErrors, ptr.Deref(shoot.Spec.SeedName, "none"))
		}
		return nil
	})
}

// operationIsTold waits until the garden knows that all tasks of the last operation are done.
func operationIsTold(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	eventually(t, func() error {
		told := operationgraph.ConfigMap(shoot)
		if err := errors.Join(get(shoot), get(told)); err != nil {
			return err
		}
		g, err := operationgraph.Read(told, shoot)
		if err != nil {
			return err
		}
		if !g.IsPresent(&shoot.Status) || len(g.Tasks) == 0 ||
			slices.ContainsFunc(g.Tasks, func(task operationgraph.Task) bool {
				return task.State != operationgraph.Succeeded && task.State != operationgraph.Skipped
			}) {
			return fmt.Errorf("the graph is %+v, after %+v", g, shoot.Status.LastOperation)
		}
		return nil
	})
}

// deleted deletes a shoot and checks that nothing is left of it.
func deleted(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	started := time.Now()
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		patch := client.MergeFrom(shoot.DeepCopy())
		shoot.Annotations = map[string]string{gardencorev1beta1.ConfirmationDeletion: "true"}
		return c.Patch(context.Background(), shoot, patch)
	})
	if err := c.Delete(context.Background(), shoot); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		err := get(shoot)
		if err == nil {
			return fmt.Errorf("still there: %+v, errors %+v", shoot.Status.LastOperation, shoot.Status.LastErrors)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	t.Logf("deleted in %s", time.Since(started))
	technicalID := "shoot--demo--" + shoot.Name
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: technicalID}},
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: technicalID}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name + ".ca-cluster"}},
		&gardencorev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name + ".ca-client"},
		},
	} {
		if err := get(object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left (%v)", object, object.GetName(), err)
		}
	}
}

// example reads a shoot of the local landscape's examples.
func example(t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "landscape", "local", "examples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(data, shoot); err != nil {
		t.Fatal(err)
	}
	return shoot
}

// load reads the objects of a file.
func load(t *testing.T, path string) []client.Object {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, document := range strings.Split(string(data), "\n---\n") {
		kind := &metav1.TypeMeta{}
		if err := yaml.Unmarshal([]byte(document), kind); err != nil {
			t.Fatal(err)
		}
		object, err := scheme(t).New(kind.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object.(client.Object))
	}
	return objects
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
