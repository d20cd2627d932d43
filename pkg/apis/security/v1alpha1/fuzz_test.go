package v1alpha1

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Whatever is sent as a kind of this group is decoded and validated without a panic.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"TokenRequest","spec":{"expirationSeconds":3600,"contextObject":{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"a","namespace":"b","uid":"c"}}}`,
		`{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","spec":{"audiences":["a","a"],"targetSystem":{"type":"aws","providerConfig":{}}}}`,
		`{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"CredentialsBinding","provider":{"type":"aws"},"credentialsRef":{"kind":"Secret"},"quotas":[{}]}`,
	} {
		f.Add([]byte(text))
	}
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	f.Fuzz(func(_ *testing.T, data []byte) {
		object, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			return
		}
		switch decoded := object.(type) {
		case *TokenRequest:
			ValidateTokenRequest(decoded)
		case *WorkloadIdentity:
			ValidateWorkloadIdentityUpdate(decoded,
				&WorkloadIdentity{Spec: WorkloadIdentitySpec{Audiences: []string{"a"}}})
		case *CredentialsBinding:
			ValidateCredentialsBindingUpdate(decoded, &CredentialsBinding{Quotas: []corev1.ObjectReference{{}}})
		}
	})
}

func TestValidateTokenRequest(t *testing.T) {
	request := func(change func(*TokenRequestSpec)) *TokenRequest {
		r := &TokenRequest{Spec: TokenRequestSpec{
			ExpirationSeconds: new(int64(3600)),
			ContextObject: &ContextObject{
				APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: new("garden-demo"),
				Name: "member1", UID: "1",
			},
		}}
		change(&r.Spec)
		return r
	}
	for name, test := range map[string]struct {
		change         func(*TokenRequestSpec)
		field, message string
	}{
		"as it is": {func(*TokenRequestSpec) {}, "", ""},
		"empty":    {func(s *TokenRequestSpec) { *s = TokenRequestSpec{} }, "", ""},
		"too short": {
			func(s *TokenRequestSpec) { s.ExpirationSeconds = new(int64(599)) }, "spec.expirationSeconds",
			"between 600",
		},
		"too long": {
			func(s *TokenRequestSpec) { s.ExpirationSeconds = new(int64(1<<32 + 1)) }, "spec.expirationSeconds",
			"4294967296",
		},
		"no kind": {func(s *TokenRequestSpec) { s.ContextObject.Kind = "" }, "spec.contextObject.kind", "Shoot"},
		"no version": {
			func(s *TokenRequestSpec) { s.ContextObject.APIVersion = "" }, "spec.contextObject.apiVersion",
			"core.gardener.cloud",
		},
		"no UID": {func(s *TokenRequestSpec) { s.ContextObject.UID = "" }, "spec.contextObject.uid", "UID"},
		"bad name": {
			func(s *TokenRequestSpec) { s.ContextObject.Name = "A" }, "spec.contextObject.name", "lower case",
		},
		"bad namespace": {
			func(s *TokenRequestSpec) { s.ContextObject.Namespace = new("A") }, "spec.contextObject.namespace",
			"lower case",
		},
		"no namespace": {
			func(s *TokenRequestSpec) { s.ContextObject.Namespace = nil }, "spec.contextObject.namespace",
			"of the Shoot",
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectError(t, ValidateTokenRequest(request(test.change)), test.field, test.message)
		})
	}
}
