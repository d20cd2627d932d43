package gateway

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
)

// processMemory is what a gateway takes without connections, with the Services and routes of some thousand shoots.
const processMemory = 64 << 20

// The limit of the chart holds all that strangers can make the gateway hold, with a sixth to spare.
func TestChartHasMemoryForAllLimits(t *testing.T) {
	data, err := charts.FS.ReadFile("gateway/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		MaxConnections, MaxHandshakes, MaxTunnels int
		Resources                                 struct{ Limits map[string]resource.Quantity }
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	if values.MaxConnections != DefaultLimits.Connections || values.MaxHandshakes != DefaultLimits.Handshakes ||
		values.MaxTunnels != demux.DefaultLimits.Sessions {
		t.Errorf("the chart's limits %+v differ from the program's", values)
	}
	limit := values.Resources.Limits["memory"]
	need := DefaultLimits.Memory() + demux.DefaultLimits.Memory() + processMemory
	if most := int(limit.Value()) * 5 / 6; need > most {
		t.Errorf("all limits need %d MiB; the chart has %s, of which %d MiB are to be used", need>>20, limit.String(),
			most>>20)
	}
}
