package kubeproxy

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Image: "kube-proxy:v1", PodNetworks: []string{"10.3.0.0/16"}, Server: "https://api.member1.demo.local.trellis.garden", CABundle: []byte("ca"),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "objects", objects...)
}
