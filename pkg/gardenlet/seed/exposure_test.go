package seed

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestUsedHandlers(t *testing.T) {
	shoot := func(name, seed string, class *string) client.Object {
		return &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: name},
			Spec:       gardencorev1beta1.ShootSpec{SeedName: &seed, ExposureClassName: class},
		}
	}
	class := func(name, handler string) client.Object {
		return &gardencorev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler}
	}
	bySeed := func(object client.Object) []string {
		return []string{ptr.Deref(object.(*gardencorev1beta1.Shoot).Spec.SeedName, "")}
	}
	builder := fake.NewClientBuilder().WithScheme(apis.GardenScheme())
	garden := builder.WithIndex(&gardencorev1beta1.Shoot{}, "spec.seedName", bySeed).WithObjects(
		shoot("a", "local", new("public")), shoot("b", "local", nil), shoot("c", "other", new("private")),
		class("public", "internet"), class("private", "intranet"),
	).Build()
	r := &Reconciler{Garden: garden}
	used, err := r.usedHandlers(t.Context(), &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}})
	if err != nil || !used.Equal(sets.New("internet")) {
		t.Errorf("got %v, %v", sets.List(used), err)
	}
}
