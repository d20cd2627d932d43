package environment

import (
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

func (e *Environment) authorizationFile() string {
	return filepath.Join(e.folder, "authorization.yaml")
}

// prepareAuthorization chooses where garden-apiserver will listen, and writes the configuration with which a garden's
// kube-apiserver asks it about the rights of seeds.
func (e *Environment) prepareAuthorization() error {
	garden, err := freeURL("https")
	if err != nil {
		return err
	}
	e.GardenAPIServerURL = garden.String()
	kubeconfig, err := e.kubeconfigFor(e.GardenAPIServerURL+seedauthorizer.Path,
		gardencorev1beta1.GardenKubeAPIServerUser)
	if err != nil {
		return err
	}
	webhook := kubeapiserver.AuthorizationWebhook{Name: "seeds", MatchConditions: seedauthorizer.MatchConditions()}
	content, err := yaml.Marshal(kubeapiserver.Authorization(webhook, kubeconfig, false))
	if err != nil {
		return err
	}
	return os.WriteFile(e.authorizationFile(), content, 0o600)
}
