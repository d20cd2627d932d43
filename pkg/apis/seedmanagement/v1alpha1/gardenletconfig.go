package v1alpha1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Version and kind of a gardenlet's configuration.
const (
	GardenletConfigurationAPIVersion = "gardenlet.config.gardener.cloud/v1alpha1"
	GardenletConfigurationKind       = "GardenletConfiguration"
)

// SeedTemplate is the seedConfig of a gardenlet's configuration: what its Seed is made from.
// +protobuf=false
type SeedTemplate struct {
	// Labels and annotations of the Seed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec gardencorev1beta1.SeedSpec `json:"spec,omitempty"`
}

// gardenletConfiguration is what is looked at here of a GardenletConfiguration; gardenlet itself knows the rest.
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type gardenletConfiguration struct {
	metav1.TypeMeta        `json:",inline"`
	GardenClientConnection *struct {
		Kubeconfig          string          `json:"kubeconfig,omitempty"`
		BootstrapKubeconfig json.RawMessage `json:"bootstrapKubeconfig,omitempty"`
		KubeconfigSecret    json.RawMessage `json:"kubeconfigSecret,omitempty"`
	} `json:"gardenClientConnection,omitempty"`
	SeedConfig *SeedTemplate `json:"seedConfig,omitempty"`
}

func decodeConfiguration(config *runtime.RawExtension) (*gardenletConfiguration, error) {
	decoded := &gardenletConfiguration{}
	if config == nil || len(config.Raw) == 0 {
		return decoded, nil
	}
	if err := json.Unmarshal(config.Raw, decoded); err != nil {
		return nil, err
	}
	if decoded.APIVersion != GardenletConfigurationAPIVersion || decoded.Kind != GardenletConfigurationKind {
		return nil, fmt.Errorf("apiVersion and kind must be %s and %s, not %q and %q", GardenletConfigurationAPIVersion,
			GardenletConfigurationKind, decoded.APIVersion, decoded.Kind)
	}
	return decoded, nil
}

// SeedTemplateOf returns the seedConfig of a configuration; nil when it has none.
func SeedTemplateOf(config *runtime.RawExtension) (*SeedTemplate, error) {
	decoded, err := decodeConfiguration(config)
	if err != nil {
		return nil, err
	}
	return decoded.SeedConfig, nil
}

// configRules is what differs between configurations, by where they are written.
// +k8s:openapi-gen=false
type configRules struct {
	bootstrap Bootstrap
	// complete configurations get nothing from a shoot or another gardenlet.
	complete bool
}

func validateConfiguration(raw *runtime.RawExtension, rules configRules, path *field.Path) field.ErrorList {
	config, err := decodeConfiguration(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "<value omitted>", err.Error())}
	}
	seed := config.SeedConfig
	if seed == nil && rules.complete {
		return field.ErrorList{field.Required(path.Child("seedConfig"), "say what the seed is like")}
	}
	var errs field.ErrorList
	if seed != nil {
		errs = validateSeedTemplate(seed, rules.complete, path.Child("seedConfig"))
	}
	return append(errs, validateConnection(config, rules, path.Child("gardenClientConnection"))...)
}

func validateSeedTemplate(template *SeedTemplate, complete bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if tooLong := gardencorev1beta1.ValidateLengths(template); len(tooLong) > 0 {
		return under(path, tooLong)
	}
	if template.Name != "" {
		errs = append(errs, field.Forbidden(path.Child("metadata", "name"),
			"must not be set: the seed gets the name of this object"))
	}
	spec := template.Spec.DeepCopy()
	gardencorev1beta1.SetDefaultsSeedSpec(spec)
	specErrs := gardencorev1beta1.ValidateNewSeedSpec(spec, path.Child("spec"))
	if !complete {
		// the shoot, and the gardenlet that installs this one, give what is missing
		specErrs = specErrs.Filter(field.NewErrorTypeMatcher(field.ErrorTypeRequired))
	}
	return append(errs, specErrs...)
}

// under puts errors of an object below the path at which it lies.
func under(path *field.Path, errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = path.Child(err.Field).String()
	}
	return errs
}

func validateConnection(config *gardenletConfiguration, rules configRules, path *field.Path) field.ErrorList {
	connection := config.GardenClientConnection
	if connection == nil {
		if rules.bootstrap == BootstrapNone {
			return field.ErrorList{kubeconfigNeeded(path)}
		}
		return nil
	}
	var errs field.ErrorList
	if rules.bootstrap != BootstrapNone {
		if connection.Kubeconfig != "" {
			errs = append(errs, field.Forbidden(path.Child("kubeconfig"),
				fmt.Sprintf("cannot be set because bootstrap is %s, which makes one", rules.bootstrap)))
		}
		return errs
	}
	if connection.Kubeconfig == "" {
		errs = append(errs, kubeconfigNeeded(path))
	}
	if len(connection.BootstrapKubeconfig) > 0 {
		errs = append(errs, field.Forbidden(path.Child("bootstrapKubeconfig"),
			"cannot be set because bootstrap is None"))
	}
	if len(connection.KubeconfigSecret) > 0 {
		errs = append(errs, field.Forbidden(path.Child("kubeconfigSecret"), "cannot be set because bootstrap is None"))
	}
	return errs
}

// kubeconfigNeeded: the access of the gardenlet that installs this one is for its own seed only, and is never handed
// on.
func kubeconfigNeeded(path *field.Path) *field.Error {
	return field.Required(path.Child("kubeconfig"),
		"needed because bootstrap is None: the path of a file in the container, mounted with additionalVolumes and "+
			"additionalVolumeMounts")
}
