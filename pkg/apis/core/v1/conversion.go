package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Annotations that hold what a version has no field for. An object has them only in that version.
const (
	// MigrationType is on v1 objects whose v1beta1 type is not helm: that type.
	MigrationType = "migration.controllerdeployment.gardener.cloud/type"
	// MigrationProviderConfig is on v1 objects: the providerConfig of another type, or the keys of helm's that v1 does
	// not know.
	MigrationProviderConfig = "migration.controllerdeployment.gardener.cloud/providerConfig"
	// MigrationResources is on v1beta1 objects: the resources of v1.
	MigrationResources = "migration.controllerdeployment.gardener.cloud/resources"
)

// typeHelm is the v1beta1 type whose providerConfig v1 has fields for.
const typeHelm = "helm"

// helmConfig is the providerConfig of type helm in v1beta1. The forms rawChart and helm are read, too.
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type helmConfig struct {
	Chart         []byte                    `json:"chart,omitempty"`
	RawChart      []byte                    `json:"rawChart,omitempty"`
	Values        *apiextensionsv1.JSON     `json:"values,omitempty"`
	OCIRepository *OCIRepository            `json:"ociRepository,omitempty"`
	Helm          *HelmControllerDeployment `json:"helm,omitempty"`
}

// helmConfigKeys are the keys of a helmConfig.
var helmConfigKeys = []string{"chart", "rawChart", "values", "ociRepository", "helm"}

func addConversions(scheme *runtime.Scheme) error {
	return errors.Join(
		scheme.AddConversionFunc((*ControllerDeployment)(nil), (*gardencorev1beta1.ControllerDeployment)(nil),
			func(in, out any, _ conversion.Scope) error {
				return ToV1beta1(in.(*ControllerDeployment), out.(*gardencorev1beta1.ControllerDeployment))
			}),
		scheme.AddConversionFunc((*gardencorev1beta1.ControllerDeployment)(nil), (*ControllerDeployment)(nil),
			func(in, out any, _ conversion.Scope) error {
				return FromV1beta1(in.(*gardencorev1beta1.ControllerDeployment), out.(*ControllerDeployment))
			}),
		scheme.AddConversionFunc((*ControllerDeploymentList)(nil), (*gardencorev1beta1.ControllerDeploymentList)(nil),
			func(in, out any, _ conversion.Scope) error {
				from, to := in.(*ControllerDeploymentList), out.(*gardencorev1beta1.ControllerDeploymentList)
				to.ListMeta = from.ListMeta
				return convertItems(from.Items, &to.Items, ToV1beta1)
			}),
		scheme.AddConversionFunc((*gardencorev1beta1.ControllerDeploymentList)(nil), (*ControllerDeploymentList)(nil),
			func(in, out any, _ conversion.Scope) error {
				from, to := in.(*gardencorev1beta1.ControllerDeploymentList), out.(*ControllerDeploymentList)
				to.ListMeta = from.ListMeta
				return convertItems(from.Items, &to.Items, FromV1beta1)
			}),
	)
}

func convertItems[From, To any](in []From, out *[]To, convert func(*From, *To) error) error {
	if in == nil {
		return nil
	}
	*out = make([]To, len(in))
	for i := range in {
		if err := convert(&in[i], &(*out)[i]); err != nil {
			return err
		}
	}
	return nil
}

// ToV1beta1 writes a v1 object as v1beta1. It fails when annotations contradict fields. The objects share no memory
// that is changed here.
func ToV1beta1(in *ControllerDeployment, out *gardencorev1beta1.ControllerDeployment) error {
	annotations := maps.Clone(in.Annotations)
	config, kind := annotations[MigrationProviderConfig], annotations[MigrationType]
	delete(annotations, MigrationProviderConfig)
	delete(annotations, MigrationType)

	out.ObjectMeta = in.ObjectMeta
	out.InjectGardenKubeconfig = in.InjectGardenKubeconfig
	if err := setResources(&annotations, in.Resources); err != nil {
		return err
	}
	out.Annotations = annotations
	if in.Helm == nil {
		out.Type = kind
		return setRaw(&out.ProviderConfig, config)
	}
	if kind != "" {
		return fmt.Errorf("metadata.annotations[%s]: cannot be set together with helm: remove one of them",
			MigrationType)
	}
	out.Type = typeHelm
	return setHelmConfig(&out.ProviderConfig, in.Helm, config)
}

// setResources keeps resources in an annotation.
func setResources(annotations *map[string]string, resources []gardencorev1beta1.NamedResourceReference) error {
	if len(resources) == 0 {
		return nil
	}
	data, err := json.Marshal(resources)
	if err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*annotations)[MigrationResources] = string(data)
	return nil
}

func setRaw(raw *runtime.RawExtension, config string) error {
	if config == "" {
		return nil
	}
	if !json.Valid([]byte(config)) {
		return fmt.Errorf("metadata.annotations[%s]: must be JSON", MigrationProviderConfig)
	}
	raw.Raw = []byte(config)
	return nil
}

// setHelmConfig writes the providerConfig of type helm; more holds keys that v1 does not know.
func setHelmConfig(raw *runtime.RawExtension, helm *HelmControllerDeployment, more string) error {
	data, err := json.Marshal(helmConfig{Chart: helm.RawChart, Values: helm.Values, OCIRepository: helm.OCIRepository})
	if err != nil {
		return fmt.Errorf("helm: %w", err)
	}
	raw.Raw = data
	if more == "" {
		return nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(more), &all); err != nil {
		return fmt.Errorf("metadata.annotations[%s]: must be a JSON object: %w", MigrationProviderConfig, err)
	}
	known := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &known); err != nil {
		return fmt.Errorf("helm: %w", err)
	}
	maps.Copy(all, known)
	raw.Raw, err = json.Marshal(all)
	return err
}

// FromV1beta1 writes a v1beta1 object as v1. It never fails for an object that is stored, so that lists can always be
// read.
func FromV1beta1(in *gardencorev1beta1.ControllerDeployment, out *ControllerDeployment) error {
	out.ObjectMeta = in.ObjectMeta
	out.Annotations = maps.Clone(in.Annotations)
	out.InjectGardenKubeconfig = in.InjectGardenKubeconfig
	takeResources(out)
	if in.Type == typeHelm {
		if helm, more, ok := parseHelmConfig(in.ProviderConfig.Raw); ok {
			out.Helm = helm
			setAnnotation(out, MigrationProviderConfig, more)
			return nil
		}
	}
	setAnnotation(out, MigrationType, in.Type)
	setAnnotation(out, MigrationProviderConfig, string(in.ProviderConfig.Raw))
	return nil
}

func setAnnotation(object metav1.Object, key, value string) {
	if value == "" {
		return
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
		object.SetAnnotations(annotations)
	}
	annotations[key] = value
}

// takeResources moves resources from the annotation into the field. What cannot be read stays where it is.
func takeResources(out *ControllerDeployment) {
	data, ok := out.Annotations[MigrationResources]
	if !ok {
		return
	}
	var resources []gardencorev1beta1.NamedResourceReference
	if err := json.Unmarshal([]byte(data), &resources); err != nil || len(resources) == 0 {
		return
	}
	out.Resources = resources
	if delete(out.Annotations, MigrationResources); len(out.Annotations) == 0 {
		out.Annotations = nil
	}
}

// parseHelmConfig reads the providerConfig of type helm, and returns as JSON what v1 has no fields for.
func parseHelmConfig(raw []byte) (helm *HelmControllerDeployment, more string, ok bool) {
	if len(raw) == 0 {
		return &HelmControllerDeployment{}, "", true
	}
	var config helmConfig
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &config) != nil || json.Unmarshal(raw, &keys) != nil {
		return nil, "", false
	}
	for _, key := range helmConfigKeys {
		delete(keys, key)
	}
	if len(keys) > 0 {
		data, err := json.Marshal(keys)
		if err != nil {
			return nil, "", false
		}
		more = string(data)
	}
	if config.Helm != nil {
		return config.Helm, more, true
	}
	if len(config.Chart) == 0 {
		config.Chart = config.RawChart
	}
	return &HelmControllerDeployment{
		RawChart: config.Chart, Values: config.Values, OCIRepository: config.OCIRepository,
	}, more, true
}
