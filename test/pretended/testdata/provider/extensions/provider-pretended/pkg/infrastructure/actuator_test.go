package infrastructure

import (
	"testing"

	"github.com/go-logr/logr"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func TestReconcile(t *testing.T) {
	infrastructure := &extensionsv1alpha1.Infrastructure{}
	if err := (Actuator{}).Reconcile(t.Context(), logr.Discard(), infrastructure, nil); err != nil {
		t.Fatal(err)
	}
	if got := infrastructure.Status.NodesCIDR; got == nil || *got != "10.250.0.0/16" {
		t.Errorf("the network of the nodes is %v", got)
	}
}
