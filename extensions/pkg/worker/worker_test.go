package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/command"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const technicalID = "shoot--demo--one"

// zones describes machines by their zone alone.
type zones struct{ err error }

func (z zones) ProviderSpec(_ context.Context, _ Scope, _ extensionsv1alpha1.WorkerPool, zone string) (any, error) {
	return map[string]string{"zone": zone}, z.err
}

// machineControllerManager plays what the manager does: it makes MachineDeployments ready at once, and lets go of
// what is deleted.
func machineControllerManager(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if err := c.Get(ctx, key, object, options...); err != nil {
		return err
	}
	switch typed := object.(type) {
	case *corev1.Secret:
		if strings.HasPrefix(typed.Name, "shoot-access-") && len(typed.Data) == 0 {
			typed.Data = map[string][]byte{"token": []byte("t")}
			return c.Update(ctx, typed)
		}
	case *machinev1alpha1.MachineDeployment:
		replicas := typed.Spec.Replicas
		typed.Status = machinev1alpha1.MachineDeploymentStatus{
			ObservedGeneration: typed.Generation, Replicas: replicas, UpdatedReplicas: replicas,
			ReadyReplicas: replicas, AvailableReplicas: replicas,
		}
	}
	return nil
}

func seed(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := command.Scheme(machinev1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().
		WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&extensionsv1alpha1.Worker{}).
		WithInterceptorFuncs(interceptor.Funcs{Get: machineControllerManager}).Build()
}

func actuatorOf(c client.Client) *actuator {
	options := Options{
		Type: "local", Delegate: zones{}, MachineControllerManager: "mcm:1",
		MachineController: corev1.Container{Image: "driver:1"},
		ReadyTimeout:      100 * time.Millisecond, PollInterval: time.Millisecond,
	}
	options.Tuning.setDefaults()
	return &actuator{options: options, client: c}
}

func shootOf(hibernated bool) *cluster.Cluster {
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &hibernated}
	return &cluster.Cluster{
		Name: technicalID, Shoot: shoot,
		Annotations: map[string]string{
			gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName: "generic-token-kubeconfig",
		},
	}
}

func workerOf(pools ...extensionsv1alpha1.WorkerPool) *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{
		ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "one"},
		Spec:       extensionsv1alpha1.WorkerSpec{Region: "here", Pools: pools},
	}
}

func poolNamed(name string, zones ...string) extensionsv1alpha1.WorkerPool {
	p := pool()
	p.Name, p.Zones, p.UserDataSecretRef = name, zones,
		corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "user-data"}, Key: "cloud_config",
		}
	return p
}

func userDataSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "user-data"},
		Data:       map[string][]byte{"cloud_config": []byte("#!/bin/bash")},
	}
}

func count(t *testing.T, c client.Client, list client.ObjectList, options ...client.ListOption) int {
	t.Helper()
	if err := c.List(t.Context(), list, append(options, client.InNamespace(technicalID))...); err != nil {
		t.Fatal(err)
	}
	return meta.LenList(list)
}

// ours are the Secrets of classes.
func ours() client.ListOption { return client.MatchingLabels{labelPurpose: purposeMachineClass} }

// Pools come and go: what is left of a former pool is taken away, class and user data with it, and the rest is
// repeated without harm.
func TestPoolsComeAndGo(t *testing.T) {
	worker := workerOf(poolNamed("a", "z1", "z2"), poolNamed("b", "z1"))
	c := seed(t, userDataSecret(), worker)
	a := actuatorOf(c)
	for _, step := range []struct {
		pools []extensionsv1alpha1.WorkerPool
		want  int
	}{
		{worker.Spec.Pools, 3}, {worker.Spec.Pools, 3}, {worker.Spec.Pools[:1], 2}, {nil, 0},
	} {
		worker.Spec.Pools = step.pools
		if err := a.Reconcile(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
			t.Fatal(err)
		}
		for _, list := range []client.ObjectList{
			&machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineClassList{},
		} {
			if got := count(t, c, list); got != step.want {
				t.Errorf("%d pools: %T has %d, want %d", len(step.pools), list, got, step.want)
			}
		}
		if got := count(t, c, &corev1.SecretList{}, ours()); got != step.want {
			t.Errorf("%d pools: %d Secrets, want %d", len(step.pools), got, step.want)
		}
		if len(worker.Status.MachineDeployments) != step.want {
			t.Errorf("reported %v", worker.Status.MachineDeployments)
		}
	}
}

// Errors name the pool and what is missing, and nothing is begun with.
func TestWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		shoot   *cluster.Cluster
		spec    error
		want    string
	}{
		"no shoot":          {nil, nil, nil, "namespace shoot--demo--one has no Cluster"},
		"no kubeconfig yet": {nil, &cluster.Cluster{Name: technicalID}, nil, "generic-token-kubeconfig"},
		"no user data":      {nil, shootOf(false), nil, "pool a: reading the user data"},
		"other user data": {
			[]client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "user-data"}}},
			shootOf(false), nil, `user-data has no key "cloud_config"`,
		},
		"no such image": {nil, shootOf(false), errors.New("no such image"), "no such image"},
	} {
		worker := workerOf(poolNamed("a", "z1"))
		c := seed(t, append(test.objects, worker)...)
		a := actuatorOf(c)
		a.options.Delegate = zones{test.spec}
		if err := a.Reconcile(t.Context(), logr.Discard(), worker, test.shoot); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := count(t, c, &machinev1alpha1.MachineDeploymentList{}); got != 0 {
			t.Errorf("%s: %d MachineDeployments", name, got)
		}
	}
}

// A shoot that sleeps has no machines, and no manager, which its API server that is about to stop would only keep
// restarting.
func TestHibernation(t *testing.T) {
	worker := workerOf(poolNamed("a", "z1"))
	c := seed(t, userDataSecret(), worker)
	a := actuatorOf(c)
	replicas := func() (machines, manager int32) {
		deployments := &machinev1alpha1.MachineDeploymentList{}
		if count(t, c, deployments) != 1 {
			t.Fatal("the pool is forgotten")
		}
		deployed := &appsv1.Deployment{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: ManagerName},
			deployed); err != nil {
			t.Fatal(err)
		}
		return deployments.Items[0].Spec.Replicas, *deployed.Spec.Replicas
	}
	for _, hibernated := range []bool{false, true, true, false} {
		if err := a.Reconcile(t.Context(), logr.Discard(), worker, shootOf(hibernated)); err != nil {
			t.Fatal(err)
		}
		if machines, manager := replicas(); (machines == 0) != hibernated || (manager == 0) != hibernated {
			t.Errorf("hibernated %v: %d machines, %d managers", hibernated, machines, manager)
		}
	}
}

// The API server is not stopped under machines that are left; the error says which.
func TestHibernationWaitsForMachines(t *testing.T) {
	worker := workerOf(poolNamed("a", "z1"))
	left := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "m1"}}
	left.Status.LastOperation.Description = "draining"
	c := seed(t, userDataSecret(), worker, left)
	err := actuatorOf(c).Reconcile(t.Context(), logr.Discard(), worker, shootOf(true))
	if err == nil || !strings.Contains(err.Error(), "cannot be hibernated yet") ||
		!strings.Contains(err.Error(), "first m1: draining") {
		t.Errorf("got %v", err)
	}
	deployed := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: ManagerName}, deployed); err != nil ||
		*deployed.Spec.Replicas != 1 {
		t.Errorf("got %v, %v", deployed.Spec.Replicas, err)
	}
}

// Everything goes, in any state, and what others have in the namespace stays.
func TestDelete(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"nothing was made": nil,
		"after machines":   {userDataSecret()},
	} {
		worker := workerOf(poolNamed("a", "z1"))
		foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "cloudprovider"}}
		c := seed(t, append(objects, worker, foreign)...)
		a := actuatorOf(c)
		if len(objects) > 0 {
			if err := a.Reconcile(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := a.Delete(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, list := range machineLists() {
			if got := count(t, c, list); got != 0 {
				t.Errorf("%s: %d of %T are left", name, got, list)
			}
		}
		for _, gone := range []client.Object{
			&appsv1.Deployment{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &corev1.ServiceAccount{},
		} {
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: ManagerName},
				gone); !apierrors.IsNotFound(err) {
				t.Errorf("%s: %T: %v", name, gone, err)
			}
		}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: "shoot-access-" + ManagerName},
			&corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the token stays: %v", name, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who gives up on the infrastructure is not held by finalizers that nobody takes away any more.
func TestForceDelete(t *testing.T) {
	held := []string{"machine.sapcloud.io/machine-controller-manager"}
	meta := metav1.ObjectMeta{Namespace: technicalID, Name: "m1", Finalizers: held}
	c := seed(t,
		&machinev1alpha1.Machine{ObjectMeta: meta}, &machinev1alpha1.MachineSet{ObjectMeta: meta},
		&machinev1alpha1.MachineDeployment{ObjectMeta: meta},
		&machinev1alpha1.MachineClass{ObjectMeta: meta},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: technicalID, Name: "class", Finalizers: held,
				Labels: map[string]string{labelPurpose: purposeMachineClass},
			},
		},
	)
	for range 2 {
		if err := actuatorOf(c).ForceDelete(t.Context(), logr.Discard(), workerOf(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, list := range append(machineLists(), client.ObjectList(&corev1.SecretList{})) {
		if got := count(t, c, list); got != 0 {
			t.Errorf("%d of %T are left", got, list)
		}
	}
}
