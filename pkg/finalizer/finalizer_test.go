package finalizer_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/finalizer"
)

const ours, theirs = "example.com/ours", "example.com/theirs"

// setUp stores an object with finalizers and returns it as a controller would have read it.
func setUp(t *testing.T, finalizers ...string) (client.Client, *corev1.ConfigMap) {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a", Finalizers: finalizers},
	}).Build()
	return c, stored(t, c)
}

func stored(t *testing.T, c client.Client) *corev1.ConfigMap {
	t.Helper()
	object := &corev1.ConfigMap{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "a", Name: "a"}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestEnsureAndRemove(t *testing.T) {
	c, object := setUp(t, theirs)
	for range 2 { // the second time there is nothing to do
		if err := finalizer.Ensure(t.Context(), c, object, ours); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, c); !slices.Equal(got.Finalizers, []string{theirs, ours}) ||
			got.ResourceVersion != object.ResourceVersion {
			t.Fatalf("stored are %v at version %s, read is version %s", got.Finalizers, got.ResourceVersion,
				object.ResourceVersion)
		}
	}
	for range 2 {
		if err := finalizer.Remove(t.Context(), c, object, ours); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, c); !slices.Equal(got.Finalizers, []string{theirs}) {
			t.Fatalf("stored are %v", got.Finalizers)
		}
	}
}

// What another added since the object was read stays: the write is refused.
func TestFinalizersOfOthersStay(t *testing.T) {
	for name, change := range map[string]func(context.Context, client.Writer, client.Object, string) error{
		"add": finalizer.Ensure, "remove": finalizer.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			c, object := setUp(t)
			if name == "remove" {
				c, object = setUp(t, ours)
			}
			other := stored(t, c)
			if err := finalizer.Ensure(t.Context(), c, other, theirs); err != nil {
				t.Fatal(err)
			}
			if err := change(t.Context(), c, object, ours); !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
			if got := stored(t, c); !slices.Contains(got.Finalizers, theirs) {
				t.Errorf("stored are %v", got.Finalizers)
			}
		})
	}
}

func TestRemoveOfWhatIsGone(t *testing.T) {
	c, object := setUp(t, ours)
	if err := finalizer.Remove(t.Context(), c, stored(t, c), ours); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), stored(t, c)); err != nil {
		t.Fatal(err)
	}
	if err := finalizer.Remove(t.Context(), c, object, ours); err != nil {
		t.Errorf("got %v", err)
	}
}
