package project

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// resourceQuotaName is the name of the ResourceQuota in namespaces of projects.
const resourceQuotaName = "gardener"

// countPrefix begins the names of limits that are numbers of objects.
const countPrefix = "count/"

// gardenGroups is how the API groups of garden-apiserver end.
const gardenGroups = ".gardener.cloud"

// QuotaConfiguration gives the namespaces of some projects a ResourceQuota, which bounds for example how many Secrets
// there are (count/secrets). The garden's kube-apiserver keeps to it for its kinds, garden-apiserver for its own:
// numbers of objects only (count/shoots.core.gardener.cloud).
type QuotaConfiguration struct {
	// Config is the ResourceQuota: its labels, annotations and spec.hard are taken.
	Config corev1.ResourceQuota `json:"config"`
	// ProjectSelector selects projects by their labels. The first configuration that selects a project counts; an empty
	// selector selects all, one that is left out none.
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// DefaultQuotas bounds, for every project, what its members can fill the garden's etcd with.
func DefaultQuotas() []QuotaConfiguration {
	return []QuotaConfiguration{{
		ProjectSelector: &metav1.LabelSelector{},
		Config: corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/secrets":                                resource.MustParse("2000"),
			"count/configmaps":                             resource.MustParse("2000"),
			"count/serviceaccounts":                        resource.MustParse("500"),
			"count/roles.rbac.authorization.k8s.io":        resource.MustParse("500"),
			"count/rolebindings.rbac.authorization.k8s.io": resource.MustParse("500"),

			"count/shoots.core.gardener.cloud":                  resource.MustParse("1000"),
			"count/secretbindings.core.gardener.cloud":          resource.MustParse("1000"),
			"count/credentialsbindings.security.gardener.cloud": resource.MustParse("1000"),
			"count/workloadidentities.security.gardener.cloud":  resource.MustParse("500"),
			"count/quotas.core.gardener.cloud":                  resource.MustParse("100"),
			"count/namespacedcloudprofiles.core.gardener.cloud": resource.MustParse("100"),
			"count/bastions.operations.gardener.cloud":          resource.MustParse("200"),
		}}},
	}}
}

// LoadQuotas reads a list of configurations from a file, which may be empty. Without a file they are the default ones.
func LoadQuotas(path string) ([]QuotaConfiguration, error) {
	if path == "" {
		return DefaultQuotas(), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("quotas of projects: %w", err)
	}
	var quotas []QuotaConfiguration
	if err := strictyaml.Unmarshal(content, &quotas, nil); err != nil {
		return nil, fmt.Errorf("quotas of projects: %s: %w", path, err)
	}
	for i := range quotas {
		if _, err := metav1.LabelSelectorAsSelector(quotas[i].ProjectSelector); err != nil {
			return nil, fmt.Errorf("quotas of projects: %s: [%d].projectSelector: %w", path, i, err)
		}
		for name := range quotas[i].Config.Spec.Hard {
			if strings.HasSuffix(string(name), gardenGroups) && !strings.HasPrefix(string(name), countPrefix) {
				return nil, fmt.Errorf("quotas of projects: %s: [%d].config.spec.hard[%s]: nothing would keep to "+
					"this limit; of the garden's kinds only "+
					"the number of objects is limited: %s%s", path, i, name, countPrefix, name)
			}
		}
	}
	return quotas, nil
}

// quotaFor returns the first configuration that selects a project; nil if none does.
func quotaFor(project *gardencorev1beta1.Project, quotas []QuotaConfiguration) (*QuotaConfiguration, error) {
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

// ensureQuota creates or completes the ResourceQuota of a project's namespace. Namespace garden is the operators' own,
// and has none.
func (r *Reconciler) ensureQuota(ctx context.Context, project *gardencorev1beta1.Project, namespace string) error {
	if namespace == gardencorev1beta1.GardenNamespace {
		return nil
	}
	wanted, err := quotaFor(project, r.Quotas)
	if err != nil || wanted == nil {
		return err
	}
	present := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: resourceQuotaName}}
	if err := client.IgnoreNotFound(r.Client.Get(ctx, client.ObjectKeyFromObject(present), present)); err != nil {
		return fmt.Errorf("resource quota: %w", err)
	}
	used, err := r.countNew(ctx, present, &wanted.Config)
	if err != nil {
		return fmt.Errorf("resource quota: %w", err)
	}
	before := present.DeepCopy()
	completeQuota(present, &wanted.Config, used)
	switch {
	case present.ResourceVersion == "":
		err = r.Client.Create(ctx, present)
	case !apiequality.Semantic.DeepEqual(before, present):
		err = r.Client.Update(ctx, present)
	}
	if err != nil {
		return fmt.Errorf("resource quota: %w", err)
	}
	return r.startQuota(ctx, present, used)
}

// startQuota writes what is used to the status, as far as it is not there: API servers do not keep to a limit that is
// not in the status, and refuse everything where only what is used is not. kube-controller-manager writes both some
// time later: as for the garden's kinds, up to five minutes when it started before garden-apiserver. What it finds in
// the status it keeps.
func (r *Reconciler) startQuota(ctx context.Context, quota *corev1.ResourceQuota, used corev1.ResourceList) error {
	before := quota.DeepCopy()
	for name, count := range used {
		if _, started := quota.Status.Used[name]; started {
			continue
		}
		if quota.Status.Hard == nil {
			quota.Status.Hard = corev1.ResourceList{}
		}
		if quota.Status.Used == nil {
			quota.Status.Used = corev1.ResourceList{}
		}
		quota.Status.Hard[name], quota.Status.Used[name] = quota.Spec.Hard[name], count
	}
	if apiequality.Semantic.DeepEqual(before, quota) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, quota); err != nil {
		return fmt.Errorf("status of the resource quota: %w", err)
	}
	return nil
}

// countNew counts the objects of a namespace whose number was not limited before. What is no number of objects of a
// kind that there is, is left to kube-controller-manager.
func (r *Reconciler) countNew(ctx context.Context, quota, wanted *corev1.ResourceQuota) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	for name := range wanted.Spec.Hard {
		_, limited := quota.Spec.Hard[name]
		_, started := quota.Status.Used[name]
		counted, isCount := strings.CutPrefix(string(name), countPrefix)
		if limited && started || !isCount {
			continue
		}
		count, err := r.count(ctx, quota.Namespace, schema.ParseGroupResource(counted))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("counting %s: %w", counted, err)
		}
		used[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return used, nil
}

// count asks for the first object of a namespace, and for the number of the others.
func (r *Reconciler) count(ctx context.Context, namespace string, of schema.GroupResource) (int64, error) {
	kind, err := r.Client.RESTMapper().KindFor(of.WithVersion(""))
	if err != nil {
		return 0, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Uncached.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return 0, err
	}
	return int64(len(list.Items)) + ptr.Deref(list.RemainingItemCount, 0), nil
}

// completeQuota brings a ResourceQuota to a configuration. Limits that are there already stay: an operator has granted
// them to this project. Those of resources that the configuration no longer names go. Who uses more than a new limit
// may use twice as much as now.
func completeQuota(quota, wanted *corev1.ResourceQuota, used corev1.ResourceList) {
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
		} else if count := used[name]; count.Cmp(limit) > 0 {
			limit = *resource.NewQuantity(2*count.Value(), resource.DecimalSI)
		}
		hard[name] = limit
	}
	quota.Spec.Hard = hard
}
