package worker

import (
	"strings"
	"testing"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"

	"github.com/trellis-garden/trellis/extensions/pkg/worker"
)

// A pool that asks for volumes that its machines would not have is refused, with its name and what to do.
func TestDataVolumesAreRefused(t *testing.T) {
	pool := extensionsv1alpha1.WorkerPool{Name: "pool", DataVolumes: []extensionsv1alpha1.DataVolume{{Name: "data"}}}
	_, err := delegate{}.ProviderSpec(t.Context(), worker.Scope{}, pool, "")
	if err == nil || !strings.Contains(err.Error(), "pool pool: dataVolumes") || !strings.Contains(err.Error(), "leave dataVolumes out") {
		t.Errorf("got %v", err)
	}
}
