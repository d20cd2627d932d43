package kubescheduler

import (
	"testing"

	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

const namespace = "shoot--demo--member1"

func TestDeployment(t *testing.T) {
	for name, values := range map[string]Values{
		"deployment": {Image: "scheduler:v1", Replicas: 1},
		"settings":   {Image: "scheduler:v1", Replicas: 2, FeatureGates: map[string]bool{"B": false, "A": true}},
		"highly-available": Decide(component.Facts{
			Images:       map[string]string{Name: "scheduler:v1"},
			Availability: component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeZone},
		}),
	} {
		values.PriorityClass = component.PriorityControlPlane300
		golden.Check(t, name, deployment(namespace, values, "kube-scheduler-11111111",
			"kube-scheduler-config-22222222"))
	}
}

func TestConfiguration(t *testing.T) {
	for name, values := range map[string]Values{
		"config-balanced":    {Replicas: 1},
		"config-bin-packing": {Replicas: 2, Profile: BinPacking},
	} {
		rendered, err := yaml.Marshal(configuration(values))
		if err != nil {
			t.Fatal(err)
		}
		golden.CheckText(t, name, string(rendered))
	}
}
