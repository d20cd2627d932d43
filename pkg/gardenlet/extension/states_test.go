package extension

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// seedFor has one Infrastructure, if it is given, and a status of its own.
func seedFor(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithStatusSubresource(&extensionsv1alpha1.Infrastructure{}).Build()
}

func infrastructure(last *gardencorev1beta1.LastOperation) *extensionsv1alpha1.Infrastructure {
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "i"}}
	object.Status.LastOperation = last
	return object
}

// deployed is the Infrastructure after it was deployed under a context.
func deployed(t *testing.T, ctx context.Context, c client.Client) *extensionsv1alpha1.Infrastructure {
	t.Helper()
	object := infrastructure(nil)
	if err := Deploy(ctx, c, object, false, func() { object.Spec.Region = "r" }); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Under the states of another seed an extension is asked to restore, and sees its state when it is asked, not before.
func TestDeployRestores(t *testing.T) {
	states := States{{"Infrastructure", "i"}: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}
	var asked []string
	saw := func(ctx context.Context, c client.Client, key client.ObjectKey) {
		object := &extensionsv1alpha1.Infrastructure{}
		if err := c.Get(ctx, key, object); err == nil {
			operation := object.Annotations[gardencorev1beta1.GardenerOperation]
			if state := object.Status.State; state != nil {
				operation += " " + string(state.Raw)
			}
			asked = append(asked, operation)
		}
	}
	funcs := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			err := c.Create(ctx, object, o...)
			if _, ok := object.(*extensionsv1alpha1.Infrastructure); ok {
				saw(ctx, c, client.ObjectKeyFromObject(object))
			}
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch,
			o ...client.PatchOption) error {
			err := c.Patch(ctx, object, p, o...)
			if _, ok := object.(*extensionsv1alpha1.Infrastructure); ok {
				saw(ctx, c, client.ObjectKeyFromObject(object))
			}
			return err
		},
	}
	deployed(t, WithStates(t.Context(), states), seedFor(t, funcs))
	if len(asked) != 2 || asked[0] != "wait-for-state" || asked[1] != `restore {"a":1}` {
		t.Errorf("the extension sees %q", asked)
	}
}

// Whatever has become of it, an object that is being restored is not reconciled: that would make anew what there is.
func TestWhatIsAskedFor(t *testing.T) {
	last := func(t gardencorev1beta1.LastOperationType,
		s gardencorev1beta1.LastOperationState) *gardencorev1beta1.LastOperation {
		return &gardencorev1beta1.LastOperation{Type: t, State: s}
	}
	failed, done := gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateSucceeded
	restore := gardencorev1beta1.LastOperationTypeRestore
	for what, test := range map[string]struct {
		states *States
		last   *gardencorev1beta1.LastOperation
		want   string
	}{
		"a creation":                      {nil, nil, "reconcile"},
		"a restore without state":         {&States{}, nil, "restore"},
		"a restore that failed":           {&States{}, last(restore, failed), "restore"},
		"a restore that failed, later":    {nil, last(restore, failed), "restore"},
		"after a restore":                 {nil, last(restore, done), "reconcile"},
		"after a restore, in that of all": {&States{}, last(restore, done), "restore"},
	} {
		ctx := t.Context()
		if test.states != nil {
			ctx = WithStates(ctx, *test.states)
		}
		var objects []client.Object
		if test.last != nil {
			objects = append(objects, infrastructure(test.last))
		}
		object := deployed(t, ctx, seedFor(t, interceptor.Funcs{}, objects...))
		if operation := object.Annotations[gardencorev1beta1.GardenerOperation]; operation != test.want {
			t.Errorf("%s: asked is %q, want %q", what, operation, test.want)
		}
	}
}
