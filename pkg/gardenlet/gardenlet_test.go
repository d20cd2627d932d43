package gardenlet

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
)

// System components of shoots are rendered with the scheme, and metrics-server has an object of a kind that seeds do
// without.
func TestSchemeKnowsObjectsOfShoots(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range metricsserver.Objects(metricsserver.Values{}) {
		if _, err := apiutil.GVKForObject(object, scheme); err != nil {
			t.Error(err)
		}
	}
}
