package network

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Config: Config{Backend: BackendVXLAN}, PodCIDR: "100.96.0.0/11", APIServerHost: "api.shoot.example",
		FlannelImage: "flannel:1", PluginsImage: "cni-plugins:1",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "objects", objects...)
}
