package credentials

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

func TestClient(t *testing.T) {
	identity := map[string]string{
		securityv1alpha1.LabelPurpose: securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor,
	}
	for name, test := range map[string]struct {
		labels          map[string]string
		data            map[string]string
		endpoint, token string
	}{
		"nothing":          {nil, nil, "http://operator", "operators"},
		"the user's token": {nil, map[string]string{"token": "users"}, "http://operator", "users"},
		"the user's cloud": {
			nil, map[string]string{"token": "users", "endpoint": "http://user"}, "http://user", "users",
		},
		"a cloud without a token": {
			nil, map[string]string{"endpoint": "http://user"}, "http://operator", "operators",
		},
		"a token of the garden": {
			identity, map[string]string{"token": "head.payload.signature"}, "http://operator", "operators",
		},
		"a token of the garden, a url": {
			identity, map[string]string{"token": "head.payload.signature", "endpoint": "http://user"},
			"http://operator", "operators",
		},
	} {
		t.Run(name, func(t *testing.T) {
			operators := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "operator"},
				Data:       map[string][]byte{"token": []byte("operators")},
			}
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cloudprovider", Labels: test.labels},
				Data:       map[string][]byte{},
			}
			for key, value := range test.data {
				secret.Data[key] = []byte(value)
			}
			source := Source{
				Reader: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(operators,
					secret).Build(),
				Endpoint: "http://operator", Secret: client.ObjectKeyFromObject(operators),
			}
			cloud, err := source.Client(t.Context(), corev1.SecretReference{Namespace: "ns", Name: "cloudprovider"})
			if err != nil || cloud.Endpoint != test.endpoint || cloud.Token != test.token {
				t.Errorf("got %+v, %v; want %s at %s", cloud, err, test.token, test.endpoint)
			}
		})
	}
}
