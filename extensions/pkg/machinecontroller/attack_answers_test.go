package machinecontroller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackEndlessAnswersToDrivers plays the owner of a shoot who would fill the memory of what runs beside the
// machine controller.
func TestAttackEndlessAnswersToDrivers(t *testing.T) {
	server := options.NewMCServer()
	server.TargetKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(server.TargetKubeconfig, hostile.Shoot(t), 0o600); err != nil {
		t.Fatal(err)
	}
	clusters, err := connect(server)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(clusters.Target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil ||
		!strings.Contains(err.Error(), hostile.Refused) {
		t.Errorf("got %v", err)
	}
}
