package gardenletconfig

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestNumbersOfConfigurationsStayWhole(t *testing.T) {
	config, err := ConfigOf(&runtime.RawExtension{Raw: []byte(`{"resources":{"capacity":{"shoots":10000000}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := config["resources"].(map[string]any)["capacity"].(map[string]any)["shoots"]; got != int64(10000000) {
		t.Errorf("got %v (%T)", got, got)
	}
}
