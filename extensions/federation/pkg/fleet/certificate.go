package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/federation/memberapi"
)

// certificateName is the Secret beside the control plane with what replicas serve the API of members with.
const certificateName = Name + "-member-api"

// ensureCertificate makes that Secret, and makes it anew when it is not good enough any more.
func (a *Actuator) ensureCertificate(ctx context.Context, namespace string) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: certificateName}, Type: corev1.SecretTypeTLS,
	}
	if _, err := controllerutil.CreateOrPatch(ctx, a.Client, secret, func() error {
		secret.Labels = component.Merge(secret.Labels, component.WithControlPlaneRole(labels()))
		now := time.Now()
		if memberapi.IsCertificate(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], now) {
			return nil
		}
		certificate, key, err := memberapi.NewCertificate(now)
		secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
		return err
	}); err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", namespace, certificateName, err)
	}
	return secret, nil
}
