package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
)

// validateAPIServerFiles checks what the ConfigMaps and Secrets say that the settings of kube-apiserver refer to, so
// that a mistake is told to who makes it. Later changes of these objects are for gardenlet to judge: they are not
// written through this server.
func (s *shootValidator) validateAPIServerFiles(ctx context.Context,
	shoot, old *gardencorev1beta1.Shoot) (field.ErrorList, error) {
	config := shoot.Spec.Kubernetes.KubeAPIServer
	if !apiserverconfig.Referred(config) ||
		old != nil && apiequality.Semantic.DeepEqual(config, old.Spec.Kubernetes.KubeAPIServer) {
		return nil, nil
	}
	source := apiserverconfig.Source{
		ConfigMap: func(ctx context.Context, name string) (*corev1.ConfigMap, error) {
			return s.ConfigMap(ctx, shoot.Namespace, name)
		},
		Secret: func(ctx context.Context, name string) (*corev1.Secret, error) {
			return s.Secret(ctx, shoot.Namespace, name)
		},
	}
	var issuers []string
	if accounts := config.ServiceAccountConfig; accounts != nil {
		issuers = append(issuers, accounts.AcceptedIssuers...)
		if issuer := ptr.Deref(accounts.Issuer, ""); issuer != "" {
			issuers = append(issuers, issuer)
		}
	}
	rules := apiserverconfig.Rules{
		Issuers: issuers, InsecureKubeconfigs: s.InsecureKubeconfigs, KubernetesVersion: shoot.Spec.Kubernetes.Version,
	}
	_, errs, err := apiserverconfig.Load(ctx, source, config, rules,
		field.NewPath("spec", "kubernetes", "kubeAPIServer"))
	return errs, err
}
