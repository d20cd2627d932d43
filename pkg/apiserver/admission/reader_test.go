package admission

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// pathReader fails as storage does for names that are paths.
type pathReader struct{ shootsByName }

func (pathReader) Get(context.Context, schema.GroupResource, string, string) (runtime.Object, error) {
	return nil, errors.New("name parameter invalid")
}

func TestNamesThatAreNone(t *testing.T) {
	for _, name := range []string{"../../garden/x", "a/b", "..", "50%"} {
		if _, err := get[*gardencorev1beta1.Shoot](t.Context(), pathReader{}, gardencorev1beta1.Resource("shoots"),
			"garden-demo", name); !apierrors.IsNotFound(err) {
			t.Errorf("%q: %v, want it not to be found", name, err)
		}
	}
}
