package apiserverconfig

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// reservedAuthorizers are the names of those that every cluster has.
var reservedAuthorizers = sets.New("node", "rbac")

// parseAuthorization reads an AuthorizationConfiguration and checks it as kube-apiserver does. It may hold webhooks
// only: every cluster has Node and RBAC before them. Kubeconfigs are the names of the authorizers that there are
// kubeconfigs for.
func parseAuthorization(data []byte, kubeconfigs []string) ([]apiserverv1.AuthorizerConfiguration, error) {
	decoded, err := runtime.Decode(strictConfigs, data)
	if err != nil {
		return nil, inKey(KeyConfig, err)
	}
	config, ok := decoded.(*apiserver.AuthorizationConfiguration)
	if !ok {
		return nil, inKey(KeyConfig, fmt.Errorf("must be an AuthorizationConfiguration of %s, not a %s",
			apiserverv1.SchemeGroupVersion, decoded.GetObjectKind().GroupVersionKind()))
	}
	if errs := validateAuthorizers(config, kubeconfigs); len(errs) > 0 {
		return nil, inKey(KeyConfig, errs.ToAggregate())
	}
	result := &apiserverv1.AuthorizationConfiguration{}
	if err := scheme.Convert(config, result, nil); err != nil {
		return nil, inKey(KeyConfig, err)
	}
	return result.Authorizers, nil
}

func validateAuthorizers(config *apiserver.AuthorizationConfiguration, kubeconfigs []string) field.ErrorList {
	var errs field.ErrorList
	var names []string
	for i := range config.Authorizers {
		authorizer := &config.Authorizers[i]
		path := field.NewPath("authorizers").Index(i)
		names = append(names, authorizer.Name)
		errs = append(errs, validateAuthorizer(authorizer, kubeconfigs, path)...)
	}
	for _, name := range kubeconfigs {
		if !slices.Contains(names, name) {
			errs = append(errs, field.NotFound(field.NewPath("authorizers"),
				fmt.Sprintf("%s, for which spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs has a "+
					"kubeconfig", name)))
		}
	}
	// kube-apiserver's check looks for the kubeconfig's file, which is not here.
	checked := config.DeepCopy()
	for i := range checked.Authorizers {
		if webhook := checked.Authorizers[i].Webhook; webhook != nil {
			webhook.ConnectionInfo = apiserver.WebhookConnectionInfo{
				Type: apiserver.AuthorizationWebhookConnectionInfoTypeInCluster,
			}
		}
	}
	webhooks := sets.New(string(apiserver.TypeWebhook))
	return append(errs, validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil,
		checked, webhooks, webhooks)...)
}

func validateAuthorizer(authorizer *apiserver.AuthorizerConfiguration, kubeconfigs []string,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if reservedAuthorizers.Has(authorizer.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), authorizer.Name,
			"is the name of an authorizer that every cluster has; choose another"))
	}
	if authorizer.Webhook == nil {
		return errs
	}
	if !slices.Contains(kubeconfigs, authorizer.Name) {
		errs = append(errs, field.Required(path.Child("name"),
			fmt.Sprintf("add a kubeconfig for authorizer %q to "+
				"spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs", authorizer.Name)))
	}
	connection, at := authorizer.Webhook.ConnectionInfo, path.Child("webhook", "connectionInfo")
	if connection.Type != "" && connection.Type != apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile {
		errs = append(errs, field.NotSupported(at.Child("type"), connection.Type,
			[]string{apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile}))
	}
	if connection.KubeConfigFile != nil {
		errs = append(errs, field.Forbidden(at.Child("kubeConfigFile"),
			"leave it out: the file is made from the Secret"))
	}
	return errs
}
