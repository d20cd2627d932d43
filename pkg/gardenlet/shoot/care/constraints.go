package care

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// slowWebhook is from which time-out on, in seconds, a webhook hinders even if its failure is ignored.
const slowWebhook = 15

// webhook is what validating and mutating webhooks have in common.
type webhook struct {
	// namespaces are the labels of the namespaces that matter.
	namespaces map[string]labels.Set
	// configuration is kind and name of the object that holds the webhook; name is the webhook's own.
	configuration, name               string
	rules                             []admissionregistrationv1.RuleWithOperations
	namespaceSelector, objectSelector *metav1.LabelSelector
	failurePolicy                     *admissionregistrationv1.FailurePolicyType
	timeoutSeconds                    *int32
}

// vital is a resource that must be written while nodes join: before the pods that serve a webhook can run.
type vital struct {
	group     string
	resources []string
	// namespaces of the objects; none for objects of the cluster.
	namespaces []string
}

// vitals are the resources without which a cluster does not wake up, and cannot be maintained.
var vitals = []vital{
	{"", []string{"nodes", "nodes/status"}, nil},
	{
		"", []string{
			"pods", "pods/status", "pods/binding", "configmaps", "secrets", "serviceaccounts", "services", "endpoints",
		}, []string{
			metav1.NamespaceSystem,
		},
	},
	{"", []string{"namespaces", "namespaces/status", "namespaces/finalize"}, []string{metav1.NamespaceSystem}},
	{
		"apps", []string{
			"controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/status",
			"replicasets", "replicasets/status",
		}, []string{
			metav1.NamespaceSystem,
		},
	},
	{"coordination.k8s.io", []string{"leases"}, []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease}},
	{"discovery.k8s.io", []string{"endpointslices"}, []string{metav1.NamespaceSystem}},
	{"networking.k8s.io", []string{"networkpolicies"}, []string{metav1.NamespaceSystem}},
	{"rbac.authorization.k8s.io", []string{"roles", "rolebindings"}, []string{metav1.NamespaceSystem}},
	{"rbac.authorization.k8s.io", []string{"clusterroles", "clusterrolebindings"}, nil},
	{
		"certificates.k8s.io", []string{
			"certificatesigningrequests", "certificatesigningrequests/status", "certificatesigningrequests/approval",
		}, nil,
	},
	{"apiextensions.k8s.io", []string{"customresourcedefinitions", "customresourcedefinitions/status"}, nil},
	{"apiregistration.k8s.io", []string{"apiservices", "apiservices/status"}, nil},
	{"scheduling.k8s.io", []string{"priorityclasses"}, nil},
	{"storage.k8s.io", []string{"csidrivers", "csinodes", "storageclasses"}, nil},
}

// systemLabels are those of the objects that are written while a cluster wakes up.
var systemLabels = labels.Set{
	resourcesv1alpha1.ManagedBy: resourcesv1alpha1.GardenerManager, gardencorev1beta1.ShootNoCleanup: "true",
}

// webhookConstraints says whether the cluster could wake up again, and be maintained, with the webhooks that it has.
// Their pods run on nodes, and without them no node could join.
func webhookConstraints(ctx context.Context, clientset kubernetes.Interface) []gardencorev1beta1.Condition {
	status, reason, message := gardencorev1beta1.ConditionTrue, "NoProblematicWebhooks", "No webhook stands in the way."
	webhooks, err := listWebhooks(ctx, clientset)
	if err == nil {
		err = addNamespaceLabels(ctx, clientset, webhooks)
	}
	if err != nil {
		status, reason, message = gardencorev1beta1.ConditionUnknown, reasonConstraintNotChecked, err.Error()
	} else if problem := webhookProblem(webhooks); problem != "" {
		status, reason, message = gardencorev1beta1.ConditionFalse, "ProblematicWebhooks", problem
	}
	return []gardencorev1beta1.Condition{
		conditions.New(gardencorev1beta1.ShootHibernationPossible, status, reason, message),
		conditions.New(gardencorev1beta1.ShootMaintenancePreconditionsSatisfied, status, reason, message),
	}
}

// listWebhooks lists all webhooks of a cluster.
func listWebhooks(ctx context.Context, clientset kubernetes.Interface) ([]webhook, error) {
	validating, err := clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx,
		metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing ValidatingWebhookConfigurations: %w", err)
	}
	mutating, err := clientset.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing MutatingWebhookConfigurations: %w", err)
	}
	var list []webhook
	for _, configuration := range validating.Items {
		for _, w := range configuration.Webhooks {
			list = append(list, webhook{
				configuration: "ValidatingWebhookConfiguration " + configuration.Name, name: w.Name, rules: w.Rules,
				namespaceSelector: w.NamespaceSelector, objectSelector: w.ObjectSelector,
				failurePolicy: w.FailurePolicy, timeoutSeconds: w.TimeoutSeconds,
			})
		}
	}
	for _, configuration := range mutating.Items {
		for _, w := range configuration.Webhooks {
			list = append(list, webhook{
				configuration: "MutatingWebhookConfiguration " + configuration.Name, name: w.Name, rules: w.Rules,
				namespaceSelector: w.NamespaceSelector, objectSelector: w.ObjectSelector,
				failurePolicy: w.FailurePolicy, timeoutSeconds: w.TimeoutSeconds,
			})
		}
	}
	return list, nil
}

// addNamespaceLabels gives the webhooks the labels of the namespaces that vital objects are in.
func addNamespaceLabels(ctx context.Context, clientset kubernetes.Interface, webhooks []webhook) error {
	if len(webhooks) == 0 {
		return nil
	}
	set := map[string]labels.Set{}
	for _, name := range []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease} {
		namespace, err := clientset.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading namespace %s: %w", name, err)
		}
		set[name] = namespace.Labels
	}
	for i := range webhooks {
		webhooks[i].namespaces = set
	}
	return nil
}

// webhookProblem describes the first webhook that keeps nodes from joining while nobody serves it; empty if there is
// none.
func webhookProblem(webhooks []webhook) string {
	for _, w := range webhooks {
		resource, hit := w.hits()
		if !hit {
			continue
		}
		policy := ptr.Deref(w.failurePolicy, admissionregistrationv1.Fail)
		timeout := ptr.Deref(w.timeoutSeconds, 10)
		if policy == admissionregistrationv1.Fail || timeout > slowWebhook {
			return fmt.Sprintf("%s: webhook %s (failurePolicy %s, timeoutSeconds %d) concerns %s of the system: "+
				"while no pod serves it, no node could join. "+
				"Exclude the namespace kube-system with its namespaceSelector, or set failurePolicy Ignore and "+
				"timeoutSeconds of at most %d.",
				w.configuration, w.name, policy, timeout, resource, slowWebhook)
		}
	}
	return ""
}

// hits says whether the webhook is called for a vital resource, and for which one.
func (w webhook) hits() (resource string, hit bool) {
	if !selects(w.objectSelector, systemLabels) {
		return "", false
	}
	for _, v := range vitals {
		if len(v.namespaces) > 0 && !slices.ContainsFunc(v.namespaces, w.concerns) {
			continue
		}
		for _, resource := range v.resources {
			if slices.ContainsFunc(w.rules,
				func(rule admissionregistrationv1.RuleWithOperations) bool { return ruleMatches(rule, v, resource) }) {
				return resource, true
			}
		}
	}
	return "", false
}

// concerns says whether the webhook is called for objects of a namespace.
func (w webhook) concerns(namespace string) bool {
	return selects(w.namespaceSelector, w.namespaces[namespace])
}

// selects says whether a selector selects labels; none selects everything. One that is not valid is refused by the API.
func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(set)
}

// ruleMatches says whether a rule is about writing a resource.
func ruleMatches(rule admissionregistrationv1.RuleWithOperations, v vital, resource string) bool {
	writes := slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.OperationAll || o == admissionregistrationv1.Create ||
			o == admissionregistrationv1.Update
	})
	scope := ptr.Deref(rule.Scope, admissionregistrationv1.AllScopes)
	namespaced := len(v.namespaces) > 0 && v.resources[0] != "namespaces"
	return writes &&
		(slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIGroups, v.group)) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool { return resourceMatches(pattern, resource) }) &&
		(scope == admissionregistrationv1.AllScopes || (scope == admissionregistrationv1.NamespacedScope) == namespaced)
}

// resourceMatches says whether a rule's resource, as "pods", "pods/*", "*/status", "*" or "*/*", covers a resource.
func resourceMatches(pattern, resource string) bool {
	patternName, patternSub, _ := strings.Cut(pattern, "/")
	name, sub, _ := strings.Cut(resource, "/")
	return (patternName == "*" || patternName == name) && (patternSub == sub || patternSub == "*")
}
