package apiserverconfig

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

var (
	scheme = newScheme()
	// strictConfigs decodes configurations of API servers as kube-apiserver does: unknown fields are errors.
	strictConfigs = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

// parseAuthentication reads an AuthenticationConfiguration of any served version and checks it as kube-apiserver does.
func parseAuthentication(data []byte, rules Rules,
	anonymousElsewhere bool) (*apiserverv1.AuthenticationConfiguration, error) {
	decoded, err := runtime.Decode(strictConfigs, data)
	if err != nil {
		return nil, inKey(KeyConfig, err)
	}
	config, ok := decoded.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, inKey(KeyConfig, fmt.Errorf("must be an AuthenticationConfiguration of %s, not a %s",
			apiserverv1.SchemeGroupVersion, decoded.GetObjectKind().GroupVersionKind()))
	}
	if config.Anonymous != nil && anonymousElsewhere {
		return nil,
			inKey(KeyConfig, errors.New("anonymous: spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication is "+
				"set as well; use one of them"))
	}
	if errs := validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config,
		rules.Issuers); len(errs) > 0 {
		return nil, inKey(KeyConfig, errs.ToAggregate())
	}
	if len(config.JWT) > 0 {
		if err := rules.allowIssuers(); err != nil {
			return nil, inKey(KeyConfig, err)
		}
	}
	result := &apiserverv1.AuthenticationConfiguration{}
	if err := scheme.Convert(config, result, nil); err != nil {
		return nil, inKey(KeyConfig, err)
	}
	result.TypeMeta = metav1.TypeMeta{
		APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration",
	}
	return result, nil
}
