package plan

import (
	"fmt"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
)

// APIServer are the values of kube-apiserver.
func (p *Plan) APIServer() kubeapiserver.Values {
	return components.ValuesOf[kubeapiserver.Values](p.Values, kubeapiserver.Name)
}

// planAPIServer adds to the values of kube-apiserver what files of the garden say, and what is being rotated.
func (p *Plan) planAPIServer(in *Inputs) error {
	values := p.APIServer()
	if !values.Encryption.Provider.IsKnown() {
		return fmt.Errorf("spec.kubernetes.kubeAPIServer.encryptionConfig.provider.type %q is not known; use "+
			"aescbc, aesgcm or secretbox", values.Encryption.Provider)
	}
	user := ptr.Deref(in.Shoot.Spec.Kubernetes.KubeAPIServer, gardencorev1beta1.KubeAPIServerConfig{})
	rules := apiserverconfig.Rules{
		Issuers:             append([]string{values.ServiceAccounts.Issuer}, values.ServiceAccounts.AcceptedIssuers...),
		InsecureKubeconfigs: in.InsecureKubeconfigs, KubernetesVersion: in.Shoot.Spec.Kubernetes.Version,
	}
	files, errs, err := apiserverconfig.Parse(&in.Files, &user, rules, APIServerPath)
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	p.FilesDigest = files.Digest
	values = values.WithFiles(&user, *files)
	p.Rotation = planRotation(&in.Shoot.Status, p.Authorities, values.Encryption.Scheme())
	values.Encryption.From = p.Rotation.Encryption.From
	values.KeepOldServiceAccountKey, values.KeepInternalKubeconfig = p.Rotation.KeepOldServiceAccountKey,
		p.Rotation.ReplacesAuthorities
	p.Values[kubeapiserver.Name] = values
	return nil
}

// encryptedResources are those that are encrypted in etcd whatever the user says.
func encryptedResources(shoot *gardencorev1beta1.Shoot) []string {
	if seedauthorizer.IsFleet(shoot) {
		return []string{gardencorev1beta1.ResourceWorks}
	}
	return nil
}
