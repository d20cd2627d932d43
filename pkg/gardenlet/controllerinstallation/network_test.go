package controllerinstallation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServicesOpenPorts(t *testing.T) {
	selector := map[string]string{"app": "example"}
	for name, test := range map[string]struct {
		annotations, selector map[string]string
		ports                 int
		fails                 bool
	}{
		"no annotation": {nil, selector, 0, false},
		"webhook": {
			map[string]string{annotationFromWorld: `[{"protocol":"TCP","port":10250}]`}, selector, 1, false,
		},
		"named port": {
			map[string]string{annotationFromWorld: `[{"protocol":"TCP","port":"webhook"},{"port":443}]`}, selector, 2,
			false,
		},
		"empty list":         {map[string]string{annotationFromWorld: `[]`}, selector, 0, false},
		"Service of nothing": {map[string]string{annotationFromWorld: `[{"port":443}]`}, nil, 0, false},
		"no list":            {map[string]string{annotationFromWorld: `443`}, selector, 0, true},
	} {
		service := corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: test.annotations},
			Spec:       corev1.ServiceSpec{Selector: test.selector},
		}
		opening, open, err := openingOf(service)
		if (err != nil) != test.fails || open != (test.ports > 0) || len(opening.Ports) != test.ports {
			t.Errorf("%s: %+v, %v, %v", name, opening, open, err)
		}
	}
}
