package await

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/flow"
)

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Data: map[string]string{"key": value},
	}
}

func hasValue(want string) Check[*corev1.ConfigMap] {
	return func(c *corev1.ConfigMap) error {
		if c.Data["key"] != want {
			return errors.New("key is " + c.Data["key"])
		}
		return nil
	}
}

func TestObjectSeesWhatIsThere(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(configMap("yes")).Build()
	if err := Object(t.Context(), c, configMap(""), hasValue("yes")); err != nil {
		t.Error(err)
	}
}

func TestObjectSeesChanges(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	object := configMap("")
	done := make(chan error)
	go func() { done <- Object(t.Context(), c, object, hasValue("yes")) }()
	if err := c.Create(t.Context(), configMap("no")); err != nil {
		t.Fatal(err)
	}
	update := configMap("yes")
	update.ResourceVersion = ""
	if err := c.Update(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil || object.Data["key"] != "yes" {
			t.Errorf("error %v, object %v", err, object.Data)
		}
	case <-time.After(10 * time.Second):
		t.Error("the change was not seen")
	}
}

func TestTimeoutTellsWhatIsMissing(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(configMap("no")).Build()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := Object(ctx, c, configMap(""), hasValue("yes"))
	if err == nil || !strings.Contains(err.Error(), "waiting for ConfigMap n/c") ||
		!strings.Contains(err.Error(), "key is no") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestPermanentErrorEndsTheWait(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(configMap("no")).Build()
	err := Object(t.Context(), c, configMap(""),
		func(*corev1.ConfigMap) error { return flow.Permanent(errors.New("never")) })
	if err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("got %v", err)
	}
}

func TestGone(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(configMap("no")).Build()
	done := make(chan error)
	go func() { done <- Gone(t.Context(), c, configMap(""), nil) }()
	if err := c.Delete(t.Context(), configMap("")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the deletion was not seen")
	}
}
