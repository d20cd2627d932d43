package withdrawal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

const namespace = "shoot--demo--member1"

var scheme = sync.OnceValue(func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme,
		resourcesv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, gatewayv1.Install,
	} {
		utilruntime.Must(add(all))
	}
	return all
})

// garden has the Seed one, confirmed to be lost for a reason, and shoots.
func garden(t *testing.T, lost string, shoots ...client.Object) client.Client {
	t.Helper()
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{
		gardencorev1beta1.AnnotationConfirmationSeedLost: lost,
	}}}
	pointer := func(name *string) []string {
		if name == nil {
			return nil
		}
		return []string{*name}
	}
	return fake.NewClientBuilder().WithScheme(scheme()).WithObjects(append(shoots, seed)...).
		WithIndex(&gardencorev1beta1.Shoot{}, "spec.seedName", func(object client.Object) []string {
			return pointer(object.(*gardencorev1beta1.Shoot).Spec.SeedName)
		}).
		WithIndex(&gardencorev1beta1.Shoot{}, "status.seedName", func(object client.Object) []string {
			return pointer(object.(*gardencorev1beta1.Shoot).Status.SeedName)
		}).Build()
}

func member1(spec, status string) client.Object {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1", UID: "uid"},
		Spec:       gardencorev1beta1.ShootSpec{SeedName: &spec},
	}
	if status != "" {
		shoot.Status.SeedName = &status
	}
	return shoot
}

// seed is a cluster with the control plane of member1, whose extensions do what they are asked for. It notes what is
// changed, in order.
type seed struct {
	client.WithWatch
	changes []string
	// changed, if set, is told how many changes there were.
	changed func(count int)
}

func newSeed(t *testing.T) *seed {
	t.Helper()
	in := metav1.ObjectMeta{Namespace: namespace}
	named := func(name string, finalizers ...string) metav1.ObjectMeta {
		meta := *in.DeepCopy()
		meta.Name, meta.Finalizers = name, finalizers
		return meta
	}
	labels := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	deployment := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: labels(name)},
		}
	}
	etcd := &appsv1.StatefulSet{ObjectMeta: named("etcd-main")}
	etcd.Spec.Replicas, etcd.Spec.Selector = new(int32(1)), labels("etcd")
	entry := metav1.ObjectMeta{Name: namespace + "--uid", Finalizers: []string{"extension"}}
	s := &seed{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme()).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot},
			Annotations: map[string]string{gardencorev1beta1.AnnotationShootUID: "uid"},
		}},
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		etcd, deployment("kube-apiserver"), deployment("kube-controller-manager"),
		deployment("machine-controller-manager"),
		&corev1.PersistentVolumeClaim{ObjectMeta: named("main-etcd-etcd-main-0")},
		&extensionsv1alpha1.Worker{ObjectMeta: named("member1", "extension")},
		&extensionsv1alpha1.Infrastructure{ObjectMeta: named("member1", "extension")},
		&extensionsv1alpha1.DNSRecord{ObjectMeta: named("member1-internal", "extension")},
		&extensionsv1alpha1.BackupEntry{ObjectMeta: entry},
		&machinev1alpha1.Machine{ObjectMeta: named("a", "machine-controller")},
		&machinev1alpha1.MachineDeployment{ObjectMeta: named("pool", "machine-controller")},
	).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			o ...client.PatchOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			defer s.note("patch", object)
			if err := c.Patch(ctx, object, patch, o...); err != nil {
				return err
			}
			return letGo(ctx, c, object)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			if err := errors.Join(ctx.Err(), refuseDeletion(object)); err != nil {
				return err
			}
			defer s.note("delete", object)
			return c.Delete(ctx, object, o...)
		},
	}).Build()
	return s
}

func (s *seed) note(verb string, object client.Object) {
	s.changes = append(s.changes, fmt.Sprintf("%s %T %s", verb, object, object.GetName()))
	if s.changed != nil {
		s.changed(len(s.changes))
	}
}

// letGo plays the extensions: who is asked to migrate keeps an object no longer.
func letGo(ctx context.Context, c client.Client, object client.Object) error {
	asked, ok := object.(extensionsv1alpha1.Object)
	if !ok || object.GetAnnotations()[gardencorev1beta1.GardenerOperation] !=
		gardencorev1beta1.GardenerOperationMigrate {
		return nil
	}
	asked.GetExtensionStatus().LastOperation = &gardencorev1beta1.LastOperation{
		Type:  gardencorev1beta1.LastOperationTypeMigrate,
		State: gardencorev1beta1.LastOperationStateSucceeded,
	}
	annotations := object.GetAnnotations()
	delete(annotations, gardencorev1beta1.GardenerOperation)
	object.SetAnnotations(annotations)
	object.SetFinalizers(nil)
	return c.Update(ctx, object)
}

// refuseDeletion plays what acts outside of the seed: to delete an object that an extension, or
// machine-controller-manager, still has would delete what it stands for.
func refuseDeletion(object client.Object) error {
	if len(object.GetFinalizers()) > 0 {
		return fmt.Errorf("%T %s is deleted, and with it what it stands for", object, object.GetName())
	}
	return nil
}

func withdrawer(garden client.Reader, s *seed) *Withdrawer {
	return &Withdrawer{Garden: garden, Seed: s, SeedName: "one", Period: time.Hour, Log: logr.Discard()}
}

func look(t *testing.T, garden client.Client, s *seed) {
	t.Helper()
	if err := withdrawer(garden, s).Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A seed that comes back takes down the copy that it has of a control plane: first what would replace machines, then
// the API server and etcd; and nothing that the other seed needs is deleted.
func TestTheSeedComesBack(t *testing.T) {
	s := newSeed(t)
	look(t, garden(t, "it burned", member1("two", "two")), s)
	position := func(change string) int {
		t.Helper()
		at := slices.Index(s.changes, change)
		if at < 0 {
			t.Fatalf("nothing did %q, but %q", change, s.changes)
		}
		return at
	}
	stopped, api, etcd := position("patch *v1.Deployment machine-controller-manager"),
		position("delete *v1.Deployment kube-apiserver"), position("delete *v1.StatefulSet etcd-main")
	if stopped > api || api > etcd {
		t.Errorf("the order is %q", s.changes)
	}
	s.checkNothingLeft(t)
}

// Wherever gardenlet is killed, the next one goes on.
func TestWithdrawalIsKilled(t *testing.T) {
	through := false
	for killed := 1; !through; killed++ {
		synctest.Test(t, func(t *testing.T) {
			s := newSeed(t)
			in := garden(t, "it burned", member1("two", "two"))
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			s.changed = func(count int) {
				if count == killed {
					kill()
				}
			}
			through = withdrawer(in, s).Look(ctx) == nil
			s.changed = nil
			look(t, in, s)
			s.checkNothingLeft(t)
		})
	}
}

// checkNothingLeft makes sure that nothing of the control plane is there.
func (s *seed) checkNothingLeft(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &extensionsv1alpha1.ClusterList{}, &extensionsv1alpha1.WorkerList{},
		&extensionsv1alpha1.InfrastructureList{}, &extensionsv1alpha1.DNSRecordList{},
		&extensionsv1alpha1.BackupEntryList{}, &machinev1alpha1.MachineList{},
		&machinev1alpha1.MachineDeploymentList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.StatefulSetList{},
	} {
		if err := s.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if left := meta.LenList(list); left > 0 {
			t.Errorf("%T has %d items", list, left)
		}
	}
}

// Nothing is taken down on one word alone, nor what is the seed's own by either field.
func TestAttackWithdrawal(t *testing.T) {
	for what, in := range map[string]client.Client{
		"nobody says that it is lost":           garden(t, "", member1("two", "two")),
		"the garden has lost all":               garden(t, ""),
		"it is confirmed with nothing":          garden(t, " ", member1("two", "two")),
		"the shoot is its own":                  garden(t, "it burned", member1("one", "one")),
		"the shoot is to be its own":            garden(t, "it burned", member1("one", "")),
		"the shoot is its own, and is to leave": garden(t, "it burned", member1("two", "one")),
	} {
		s := newSeed(t)
		look(t, in, s)
		if len(s.changes) > 0 {
			t.Errorf("%s: it does %q", what, s.changes)
		}
	}
	// Without an answer of the garden, nothing.
	s := newSeed(t)
	silent := interceptor.NewClient(garden(t, "it burned").(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return fmt.Errorf("no answer")
		},
	})
	if err := withdrawer(silent, s).Look(t.Context()); err == nil || len(s.changes) > 0 {
		t.Errorf("it ends with %v, and does %q", err, s.changes)
	}
}
