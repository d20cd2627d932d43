package examplecontroller

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestDeployment(t *testing.T) {
	values := Decide(component.Facts{
		Images: map[string]string{Name: "example:v1"}, PriorityClass: component.PriorityControlPlane300,
	})
	golden.Check(t, "deployment", deployment("shoot--demo--member1", values, "example-controller-11111111"))
}
