package bastion

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBjIl+ho6NDM5XvXNcbEKVxe0EDUTCqZuK4Vwh2cuPnP alice"

func aBastion() *operationsv1alpha1.Bastion {
	return &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "cli-1", Generation: 3},
		Spec: operationsv1alpha1.BastionSpec{
			ShootRef: corev1.LocalObjectReference{Name: "member1"}, SeedName: new("one"), ProviderType: new("cloud"),
			SSHPublicKey: key,
			Ingress: []operationsv1alpha1.BastionIngressPolicy{
				{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}},
			},
		},
	}
}

func aShoot() *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		Spec: gardencorev1beta1.ShootSpec{
			Provider: gardencorev1beta1.Provider{Type: "cloud"}, SeedName: new("one"),
		},
		Status: gardencorev1beta1.ShootStatus{TechnicalID: "shoot--demo--member1"},
	}
}

// world is a garden and a seed with a reconciler between them.
type world struct {
	*testing.T
	*Reconciler
}

func newWorld(t *testing.T, objects ...client.Object) world {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, operationsv1alpha1.AddToScheme,
		extensionsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return world{t, &Reconciler{
		Garden: fake.NewClientBuilder().
			WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&operationsv1alpha1.Bastion{}).Build(),
		Seed: fake.NewClientBuilder().
			WithScheme(scheme).WithStatusSubresource(&extensionsv1alpha1.Bastion{}).Build(),
		SeedName: "one", Now: time.Now,
	}}
}

func (w world) reconcile() ctrl.Result {
	w.Helper()
	result, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(aBastion())})
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// bastion reads the Bastion of the garden; nil if it is gone.
func (w world) bastion() *operationsv1alpha1.Bastion {
	w.Helper()
	bastion := aBastion()
	if err := w.Garden.Get(w.Context(), client.ObjectKeyFromObject(bastion), bastion); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Fatal(err)
	}
	return bastion
}

// object reads the extension's object; nil if there is none.
func (w world) object() *extensionsv1alpha1.Bastion {
	w.Helper()
	object := objectFor(aBastion(), aShoot())
	if err := w.Seed.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Fatal(err)
	}
	return object
}

// finish does what an extension does.
func (w world) finish(change func(*extensionsv1alpha1.BastionStatus)) {
	w.Helper()
	object := w.object()
	delete(object.Annotations, gardencorev1beta1.GardenerOperation)
	if err := w.Seed.Update(w.Context(), object); err != nil {
		w.Fatal(err)
	}
	object.Status.ObservedGeneration = object.Generation
	object.Status.LastOperation = &gardencorev1beta1.LastOperation{
		State: gardencorev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Now(),
	}
	change(&object.Status)
	if err := w.Seed.Status().Update(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

func (w world) expectCondition(status gardencorev1beta1.ConditionStatus, message string) {
	w.Helper()
	condition := conditions.Get(w.bastion().Status.Conditions, operationsv1alpha1.BastionReady)
	if condition == nil || condition.Status != status || !strings.Contains(condition.Message, message) {
		w.Errorf("condition is %+v, want %s: …%s…", condition, status, message)
	}
}

func TestBastionIsMadeAndRemoved(t *testing.T) {
	w := newWorld(t, aBastion(), aShoot())
	if w.reconcile().RequeueAfter == 0 {
		t.Error("the extension's answer is not waited for")
	}
	w.expectCondition(gardencorev1beta1.ConditionProgressing, "not picked up")
	object := w.object()
	want := []extensionsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}}}
	if difference := cmp.Diff(want, object.Spec.Ingress); difference != "" || object.Spec.Type != "cloud" {
		t.Errorf("type %s, ingress %s", object.Spec.Type, difference)
	}
	w.finish(func(*extensionsv1alpha1.BastionStatus) {})
	w.reconcile()
	w.expectCondition(gardencorev1beta1.ConditionProgressing, "no address")
	w.finish(func(s *extensionsv1alpha1.BastionStatus) { s.Ingress = &corev1.LoadBalancerIngress{IP: "198.51.100.1"} })
	if w.reconcile().RequeueAfter != 0 {
		t.Error("a bastion that is ready is looked at again and again")
	}
	w.expectCondition(gardencorev1beta1.ConditionTrue, "can be reached")
	bastion := w.bastion()
	if bastion.Status.Ingress.IP != "198.51.100.1" || *bastion.Status.ObservedGeneration != 3 ||
		len(bastion.Finalizers) != 1 {
		t.Errorf("bastion is %+v", bastion)
	}

	object = w.object()
	object.Finalizers = []string{"extension"}
	if err := w.Seed.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := w.Garden.Delete(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.expectCondition(gardencorev1beta1.ConditionFalse, "being removed")
	object = w.object()
	object.Finalizers = nil
	if err := w.Seed.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if w.bastion() != nil || w.object() != nil {
		t.Error("the bastion is left")
	}
}

func TestFailureOfTheExtension(t *testing.T) {
	w := newWorld(t, aBastion(), aShoot())
	w.reconcile()
	w.finish(func(s *extensionsv1alpha1.BastionStatus) {
		s.LastError = &gardencorev1beta1.LastError{
			Description: "quota", Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraQuotaExceeded},
		}
	})
	if w.reconcile().RequeueAfter == 0 {
		t.Error("it is given up")
	}
	w.expectCondition(gardencorev1beta1.ConditionFalse, "quota")
	if codes := w.bastion().Status.Conditions[0].Codes; len(codes) != 1 ||
		codes[0] != gardencorev1beta1.ErrorInfraQuotaExceeded {
		t.Errorf("codes are %v", codes)
	}
}

func TestReconcileOnRequest(t *testing.T) {
	asked := aBastion()
	asked.Annotations = map[string]string{
		gardencorev1beta1.GardenerOperation: gardencorev1beta1.GardenerOperationReconcile,
	}
	w := newWorld(t, asked, aShoot())
	w.reconcile()
	if left := w.bastion().Annotations[gardencorev1beta1.GardenerOperation]; left != "" {
		t.Errorf("operation %q stays", left)
	}
}

func TestBastionsThatAreNotOurs(t *testing.T) {
	leaving := aShoot()
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"x"}, &metav1.Time{Time: time.Now()}
	elsewhere := aBastion()
	elsewhere.Spec.SeedName = new("two")
	early := aShoot()
	early.Status.TechnicalID = ""
	for name, objects := range map[string][]client.Object{
		"of another seed": {elsewhere, aShoot()}, "without a shoot": {aBastion()},
		"of a shoot that goes": {aBastion(), leaving}, "of a shoot that begins": {aBastion(), early},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, objects...)
			w.reconcile()
			if w.object() != nil {
				t.Error("an object is written")
			}
		})
	}
}

func TestWithoutItsShootABastionGoes(t *testing.T) {
	bastion := aBastion()
	bastion.Finalizers, bastion.DeletionTimestamp = []string{gardencorev1beta1.GardenerName},
		&metav1.Time{Time: time.Now()}
	w := newWorld(t, bastion)
	w.reconcile()
	if w.bastion() != nil {
		t.Error("the bastion is left")
	}
}

// A bastion has one key for as long as it lives, and its user is told which. Another user's bastion, left behind under
// the same name, is no way in for them.
func TestKeyOfTheBastion(t *testing.T) {
	w := newWorld(t, aBastion(), aShoot())
	w.reconcile()
	if keys := w.bastion().Status.HostKeys; keys != nil {
		t.Errorf("without an address: %q", keys)
	}
	w.finish(func(s *extensionsv1alpha1.BastionStatus) { s.Ingress = &corev1.LoadBalancerIngress{IP: "198.51.100.1"} })
	w.reconcile()
	access, err := bastionaccess.Parse(w.object().Spec.UserData)
	if err != nil || access.AuthorizedKey != key {
		t.Fatalf("got %+v, %v", access, err)
	}
	want, err := access.HostKeys()
	if got := w.bastion().Status.HostKeys; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q, %v", got, want, err)
	}
	if again, err := accessFor(key, access.UserData()); err != nil || !bytes.Equal(again.HostKey, access.HostKey) {
		t.Errorf("another key: %v", err)
	}
	other, err := accessFor("ssh-ed25519 AAAA bob", access.UserData())
	if err != nil || other.AuthorizedKey != "ssh-ed25519 AAAA bob" || bytes.Equal(other.HostKey, access.HostKey) {
		t.Errorf("the key of another user stays: %v", err)
	}
}
