package extension

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
)

func TestCheck(t *testing.T) {
	asked := time.Date(2026, 1, 1, 12, 0, 0, 500_000_000, time.UTC)
	done := func() *extensionsv1alpha1.Infrastructure {
		return &extensionsv1alpha1.Infrastructure{
			ObjectMeta: metav1.ObjectMeta{
				Name: "i", Generation: 2, Annotations: map[string]string{
					gardencorev1beta1.GardenerTimestamp: asked.Format(time.RFC3339Nano),
				},
			},
			Status: extensionsv1alpha1.InfrastructureStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{
				ObservedGeneration: 2,
				LastOperation: &gardencorev1beta1.LastOperation{
					State:          gardencorev1beta1.LastOperationStateSucceeded,
					LastUpdateTime: metav1.NewTime(asked.Truncate(time.Second)),
				},
			}},
		}
	}
	for _, test := range []struct {
		name   string
		change func(*extensionsv1alpha1.Infrastructure)
		want   string
	}{
		{"done", func(*extensionsv1alpha1.Infrastructure) {}, ""},
		{"not picked up", func(i *extensionsv1alpha1.Infrastructure) {
			i.Annotations[gardencorev1beta1.GardenerOperation] = "reconcile"
		}, `not picked up operation "reconcile"`},
		{
			"older generation", func(i *extensionsv1alpha1.Infrastructure) { i.Status.ObservedGeneration = 1 },
			"seen generation 1, not 2",
		},
		{
			"no operation", func(i *extensionsv1alpha1.Infrastructure) { i.Status.LastOperation = nil },
			"not reported an operation",
		},
		{"at work", func(i *extensionsv1alpha1.Infrastructure) {
			i.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
		}, "is Processing"},
		{"error", func(i *extensionsv1alpha1.Infrastructure) {
			i.Status.LastError = &gardencorev1beta1.LastError{Description: "no network"}
		}, `Infrastructure "i": no network`},
		{"error in the second of the request", func(i *extensionsv1alpha1.Infrastructure) {
			reportError(i, asked.Truncate(time.Second))
			i.Status.LastOperation.State = gardencorev1beta1.LastOperationStateError
		}, `Infrastructure "i": wrong token`},
		{"error of before the request", func(i *extensionsv1alpha1.Infrastructure) {
			reportError(i, asked.Add(-time.Minute))
			i.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
		}, "is Processing"},
		{"error of before the request, in the same second", func(i *extensionsv1alpha1.Infrastructure) {
			reportError(i, asked.Truncate(time.Second))
			i.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
		}, "is Processing"},
		{"error of a restoration", func(i *extensionsv1alpha1.Infrastructure) {
			reportError(i, asked.Add(time.Second))
			i.Annotations[gardencorev1beta1.GardenerOperation] = gardencorev1beta1.GardenerOperationRestore
		}, `Infrastructure "i": wrong token`},
		{"error of before the request to restore", func(i *extensionsv1alpha1.Infrastructure) {
			reportError(i, asked.Add(-time.Minute))
			i.Annotations[gardencorev1beta1.GardenerOperation] = gardencorev1beta1.GardenerOperationRestore
		}, `not picked up operation "restore"`},
		{"answer of before the request", func(i *extensionsv1alpha1.Infrastructure) {
			i.Status.LastOperation.LastUpdateTime = metav1.NewTime(asked.Add(-time.Minute))
		}, "older than the request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := done()
			test.change(object)
			err := Check(object)
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func reportError(i *extensionsv1alpha1.Infrastructure, at time.Time) {
	time := metav1.NewTime(at)
	i.Status.LastError = &gardencorev1beta1.LastError{Description: "wrong token", LastUpdateTime: &time}
}

func TestErrorsMustLastToEndAWait(t *testing.T) {
	now := time.Now()
	p := &patience{limit: time.Minute, now: func() time.Time { return now }}
	reported := &Error{Description: "busy"}
	if err := p.judge(reported); flow.IsPermanent(err) {
		t.Error("the first error ends the wait")
	}
	if err := p.judge(errors.New("not done")); flow.IsPermanent(err) {
		t.Error("an error that the extension did not report ends the wait")
	}
	now = now.Add(time.Minute)
	if err := p.judge(reported); !flow.IsPermanent(err) {
		t.Error("an error that lasts does not end the wait")
	}
	unauthorized := &Error{Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthorized}}
	if err := (&patience{limit: time.Hour, now: time.Now}).judge(unauthorized); !flow.IsPermanent(err) {
		t.Error("wrong credentials do not end the wait at once")
	}
}

func TestDeployAsksForAnOperationOnlyWhenThereIsAReason(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&extensionsv1alpha1.DNSRecord{}).Build()
	deploy := func(value string, force bool) bool {
		object := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r"}}
		err := Deploy(t.Context(), c, object, force, func() {
			object.Spec = extensionsv1alpha1.DNSRecordSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Name: "a.b", RecordType: "A",
				Values: []string{value},
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		asked := object.Annotations[gardencorev1beta1.GardenerOperation] != ""
		finish(t, c, object)
		return asked
	}
	for i, step := range []struct {
		value string
		force bool
		want  bool
	}{
		{"1.2.3.4", false, true}, {"1.2.3.4", false, false}, {"1.2.3.5", false, true}, {"1.2.3.5", true, true},
	} {
		if got := deploy(step.value, step.force); got != step.want {
			t.Errorf("step %d: asked %v, want %v", i, got, step.want)
		}
	}
}

// finish does what an extension does.
func finish(t *testing.T, c client.Client, object *extensionsv1alpha1.DNSRecord) {
	t.Helper()
	delete(object.Annotations, gardencorev1beta1.GardenerOperation)
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	object.Status.ObservedGeneration = object.Generation
	object.Status.LastOperation = &gardencorev1beta1.LastOperation{
		State: gardencorev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Now(),
	}
	if err := c.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// A deletion that failed is asked for anew, but for one that another operation has to do with.
func TestDestroyAsksAgain(t *testing.T) {
	failed := func(operation string) *extensionsv1alpha1.Infrastructure {
		now := metav1.Now()
		object := infrastructure(&gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateError})
		object.DeletionTimestamp, object.Finalizers = &now, []string{"example.com/infrastructure"}
		object.Annotations = map[string]string{gardencorev1beta1.GardenerOperation: operation}
		reportError(object, now.Add(-time.Minute))
		return object
	}
	const reconcile, migrate = gardencorev1beta1.GardenerOperationReconcile, gardencorev1beta1.GardenerOperationMigrate
	for operation, want := range map[string]string{"": reconcile, reconcile: reconcile, migrate: migrate} {
		object := failed(operation)
		c := seedFor(t, interceptor.Funcs{}, object)
		if err := Destroy(t.Context(), c, object); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if got := object.Annotations[gardencorev1beta1.GardenerOperation]; got != want {
			t.Errorf("operation %q became %q, want %q", operation, got, want)
		}
		if err := reported(object); operation != migrate && err != nil {
			t.Errorf("the error of before the request counts: %v", err)
		}
	}
}
