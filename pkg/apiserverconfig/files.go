package apiserverconfig

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Keys in the ConfigMaps and Secrets.
const (
	// KeyPolicy holds an audit policy.
	KeyPolicy = "policy"
	// KeyConfig holds an authentication or authorization configuration.
	KeyConfig = "config.yaml"
	// KeyKubeconfig holds the kubeconfig of a webhook.
	KeyKubeconfig = "kubeconfig"
)

// Source reads objects of the shoot's namespace in the garden. Errors with reason NotFound are the user's.
type Source struct {
	ConfigMap func(ctx context.Context, name string) (*corev1.ConfigMap, error)
	Secret    func(ctx context.Context, name string) (*corev1.Secret, error)
}

// Files are the contents that a Shoot refers to, as they are in the garden.
type Files struct {
	AuditPolicy, Authentication, Authorization []byte `json:",omitempty"`
	// AuthorizerKubeconfigs by the name of the authorizer, PluginKubeconfigs by that of the admission plugin.
	AuthorizerKubeconfigs, PluginKubeconfigs map[string][]byte `json:",omitempty"`
}

// Digest identifies the contents; it is empty if there are none.
func (f *Files) Digest() (string, error) {
	encoded, err := json.Marshal(f)
	if err != nil || string(encoded) == "{}" {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8]), nil
}

// Referred tells whether a configuration refers to any object.
func Referred(config *gardencorev1beta1.KubeAPIServerConfig) bool {
	if config == nil {
		return false
	}
	for _, plugin := range config.AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil {
			return true
		}
	}
	return auditConfigMap(config) != "" || config.StructuredAuthentication != nil ||
		config.StructuredAuthorization != nil
}

func auditConfigMap(config *gardencorev1beta1.KubeAPIServerConfig) string {
	if audit := config.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		return audit.AuditPolicy.ConfigMapRef.Name
	}
	return ""
}

// Paths of the fields that refer to objects, below that of the kube-apiserver's configuration.
func auditPath(path *field.Path) *field.Path {
	return path.Child("auditConfig", "auditPolicy", "configMapRef", "name")
}
func authenticationPath(path *field.Path) *field.Path {
	return path.Child("structuredAuthentication", "configMapName")
}
func authorizationPath(path *field.Path) *field.Path {
	return path.Child("structuredAuthorization", "configMapName")
}
func authorizerPath(path *field.Path, i int) *field.Path {
	return path.Child("structuredAuthorization", "kubeconfigs").Index(i).Child("secretName")
}
func pluginPath(path *field.Path, i int) *field.Path {
	return path.Child("admissionPlugins").Index(i).Child("kubeconfigSecretName")
}

// Read reads everything that a configuration refers to. What is missing is told by field; the error is one of the
// source.
func Read(ctx context.Context, source Source, config *gardencorev1beta1.KubeAPIServerConfig,
	path *field.Path) (*Files, field.ErrorList, error) {
	r := &reader{ctx: ctx, source: source}
	files := &Files{}
	if config == nil {
		return files, nil, nil
	}
	if name := auditConfigMap(config); name != "" {
		files.AuditPolicy = r.configMap(auditPath(path), name, KeyPolicy)
	}
	if authentication := config.StructuredAuthentication; authentication != nil {
		files.Authentication = r.configMap(authenticationPath(path), authentication.ConfigMapName, KeyConfig)
	}
	if authorization := config.StructuredAuthorization; authorization != nil {
		files.Authorization = r.configMap(authorizationPath(path), authorization.ConfigMapName, KeyConfig)
		files.AuthorizerKubeconfigs = map[string][]byte{}
		for i, kubeconfig := range authorization.Kubeconfigs {
			files.AuthorizerKubeconfigs[kubeconfig.AuthorizerName] = r.secret(authorizerPath(path, i),
				kubeconfig.SecretName)
		}
	}
	for i, plugin := range config.AdmissionPlugins {
		if plugin.KubeconfigSecretName == nil {
			continue
		}
		if files.PluginKubeconfigs == nil {
			files.PluginKubeconfigs = map[string][]byte{}
		}
		files.PluginKubeconfigs[plugin.Name] = r.secret(pluginPath(path, i), *plugin.KubeconfigSecretName)
	}
	return files, r.missing, r.err
}

// reader reads one object after the other, and remembers what went wrong.
type reader struct {
	ctx     context.Context
	source  Source
	missing field.ErrorList
	err     error
}

func (r *reader) configMap(path *field.Path, name, key string) []byte {
	object, err := r.source.ConfigMap(r.ctx, name)
	if r.failed(path, "ConfigMap", name, err) {
		return nil
	}
	return r.value(path, "ConfigMap", name, key, []byte(object.Data[key]))
}

func (r *reader) secret(path *field.Path, name string) []byte {
	object, err := r.source.Secret(r.ctx, name)
	if r.failed(path, "Secret", name, err) {
		return nil
	}
	return r.value(path, "Secret", name, KeyKubeconfig, object.Data[KeyKubeconfig])
}

func (r *reader) failed(path *field.Path, kind, name string, err error) bool {
	switch {
	case apierrors.IsNotFound(err):
		r.missing = append(r.missing, field.NotFound(path, name))
	case err != nil && r.err == nil:
		r.err = fmt.Errorf("reading %s %s of the garden: %w", kind, name, err)
	}
	return err != nil
}

func (r *reader) value(path *field.Path, kind, name, key string, value []byte) []byte {
	if len(value) == 0 {
		r.missing = append(r.missing, field.Invalid(path, name,
			fmt.Sprintf("the %s has no key %q, or nothing under it", kind, key)))
	}
	return value
}
