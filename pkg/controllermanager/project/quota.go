package project

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// resourceQuotaName is the name of the ResourceQuota in namespaces of projects.
const resourceQuotaName = "gardener"

// gardenGroups is how the API groups of garden-apiserver end.
const gardenGroups = ".gardener.cloud"

// QuotaConfiguration gives the namespaces of some projects a ResourceQuota, which bounds for example how many Secrets there are (count/secrets).
// The garden's kube-apiserver keeps to it, and with that for its own kinds only.
type QuotaConfiguration struct {
	// Config is the ResourceQuota: its labels, annotations and spec.hard are taken.
	Config corev1.ResourceQuota `json:"config"`
	// ProjectSelector selects projects by their labels. The first configuration that selects a project counts; an empty selector
	// selects all, one that is left out none.
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// LoadQuotas reads a list of configurations from a file. Without a file there are none.
func LoadQuotas(path string) ([]QuotaConfiguration, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("quotas of projects: %w", err)
	}
	var quotas []QuotaConfiguration
	if err := yaml.UnmarshalStrict(content, &quotas); err != nil {
		return nil, fmt.Errorf("quotas of projects: %s: %w", path, err)
	}
	for i := range quotas {
		if _, err := metav1.LabelSelectorAsSelector(quotas[i].ProjectSelector); err != nil {
			return nil, fmt.Errorf("quotas of projects: %s: [%d].projectSelector: %w", path, i, err)
		}
		for name := range quotas[i].Config.Spec.Hard {
			if strings.HasSuffix(string(name), gardenGroups) {
				return nil, fmt.Errorf("quotas of projects: %s: [%d].config.spec.hard[%s]: nothing would keep to this limit, a ResourceQuota counts only "+
					"what kube-apiserver stores; remove it, and limit shoots by a Quota of their credentials", path, i, name)
			}
		}
	}
	return quotas, nil
}

// quotaFor returns the first configuration that selects a project; nil if none does.
func quotaFor(project *corev1beta1.Project, quotas []QuotaConfiguration) (*QuotaConfiguration, error) {
	for i := range quotas {
		selector, err := metav1.LabelSelectorAsSelector(quotas[i].ProjectSelector)
		if err != nil {
			return nil, err
		}
		if selector.Matches(labels.Set(project.Labels)) {
			return &quotas[i], nil
		}
	}
	return nil, nil
}

// ensureQuota creates or completes the ResourceQuota of a project's namespace.
func (r *Reconciler) ensureQuota(ctx context.Context, project *corev1beta1.Project, namespace string) error {
	wanted, err := quotaFor(project, r.Quotas)
	if err != nil || wanted == nil {
		return err
	}
	present := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: resourceQuotaName}}
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(present), present)
	if apierrors.IsNotFound(err) {
		completeQuota(present, &wanted.Config)
		return r.Client.Create(ctx, present)
	}
	if err != nil {
		return fmt.Errorf("resource quota: %w", err)
	}
	before := present.DeepCopy()
	completeQuota(present, &wanted.Config)
	if apiequality.Semantic.DeepEqual(before, present) {
		return nil
	}
	return r.Client.Update(ctx, present)
}

// completeQuota brings a ResourceQuota to a configuration. Limits that are there already stay: an operator has granted them to this
// project. Those of resources that the configuration no longer names go.
func completeQuota(quota, wanted *corev1.ResourceQuota) {
	for key, value := range wanted.Labels {
		metav1.SetMetaDataLabel(&quota.ObjectMeta, key, value)
	}
	for key, value := range wanted.Annotations {
		metav1.SetMetaDataAnnotation(&quota.ObjectMeta, key, value)
	}
	hard := corev1.ResourceList{}
	for name, limit := range wanted.Spec.Hard {
		if granted, ok := quota.Spec.Hard[name]; ok {
			limit = granted
		}
		hard[name] = limit
	}
	quota.Spec.Hard = hard
}
