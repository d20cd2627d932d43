package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

func (c *cli) explainCommand() *cobra.Command {
	var access fleetAccess
	var namespace string
	command := &cobra.Command{
		Use:   "explain TYPE/NAME",
		Short: "Explain where an object of a fleet runs, and why not elsewhere",
		Long: `explain shows the last decision on an object: which policy placed it, and for every cluster of the fleet whether it was chosen.

  FITS       the cluster passed all checks of its own: affinity, taints, APIs, spread properties
  SCORE      100 if it had the object before; clusters with more are preferred
  WEIGHT     of static division
  AVAILABLE  how many replicas it had room for when the decision was made, those that it had included
  WHY        what became of the object there, or the first check that the cluster failed, with the values that were compared

Below it, the fields that override policies set, cluster by cluster, and the rule that set each.`,
		Example: `  trellisctl explain deployment/nginx --project demo --shoot fleet
  trellisctl explain deployments.apps/nginx -n web --fleet-kubeconfig fleet.yaml
  trellisctl explain clusterrole/reader`,
		Args: oneObject,
		RunE: func(command *cobra.Command, args []string) error {
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			return fleet.Explain(command.Context(), command.OutOrStdout(), args[0], namespace)
		},
	}
	access.flags(command)
	command.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of the object")
	return command
}

// Explain prints the last decision on an object, given as TYPE/NAME.
func (f *Fleet) Explain(ctx context.Context, out io.Writer, object, namespace string) error {
	key, err := f.objectKey(object, namespace)
	if err != nil {
		return err
	}
	b, err := bindings.Get(ctx, f.Client,
		types.NamespacedName{Namespace: key.Namespace, Name: bindings.Name(key.Name, key.Kind)})
	if err != nil {
		return err
	}
	if b == nil {
		return f.explainAbsence(ctx, key)
	}
	explainSummary(out, b)
	if err := f.explainGrowth(ctx, out, b); err != nil {
		return err
	}
	if err := explainClusters(out, b); err != nil {
		return err
	}
	return f.explainOverrides(ctx, out, b, key)
}

// objectKey understands what kubectl does: kinds, resources, short names, each with a group if need be.
func (f *Fleet) objectKey(object, namespace string) (bindings.TemplateKey, error) {
	resource, name, found := strings.Cut(object, "/")
	if !found || resource == "" || name == "" || strings.Contains(name, "/") {
		return bindings.TemplateKey{}, fmt.Errorf("%q: write TYPE/NAME, such as deployment/nginx", object)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(f.Config)
	if err != nil {
		return bindings.TemplateKey{}, err
	}
	groups, err := restmapper.GetAPIGroupResources(discoveryClient)
	if err != nil {
		return bindings.TemplateKey{}, fmt.Errorf("asking the fleet for its APIs: %w", err)
	}
	mapping, err := mappingFor(restmapper.NewDiscoveryRESTMapper(groups), discoveryClient, resource)
	if err != nil {
		return bindings.TemplateKey{}, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	return bindings.TemplateKey{
		GroupVersionKind: mapping.GroupVersionKind,
		NamespacedName:   types.NamespacedName{Namespace: namespace, Name: name},
	}, nil
}

func mappingFor(mapper meta.RESTMapper, discoveryClient *discovery.DiscoveryClient,
	resource string) (*meta.RESTMapping, error) {
	cached := discoveryOnce{discoveryClient}
	mapper = restmapper.NewShortcutExpander(mapper, cached, nil)
	gvk, err := kindFor(mapper, strings.ToLower(resource))
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the fleet knows no type %q; `kubectl api-resources` lists those that it knows",
			resource)
	}
	if err != nil {
		return nil, fmt.Errorf("type %q: %w", resource, err)
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// kindFor understands deployments.v1.apps, deployments.apps and deployments.
func kindFor(mapper meta.RESTMapper, resource string) (schema.GroupVersionKind, error) {
	versioned, group := schema.ParseResourceArg(resource)
	if versioned != nil {
		if gvk, err := mapper.KindFor(*versioned); err == nil {
			return gvk, nil
		}
	}
	return mapper.KindFor(group.WithVersion(""))
}

// discoveryOnce is for one command, which asks once.
type discoveryOnce struct{ *discovery.DiscoveryClient }

// Fresh implements discovery.CachedDiscoveryInterface.
func (discoveryOnce) Fresh() bool { return true }

// Invalidate implements discovery.CachedDiscoveryInterface.
func (discoveryOnce) Invalidate() {}

// explainAbsence says why there is no decision.
func (f *Fleet) explainAbsence(ctx context.Context, key bindings.TemplateKey) error {
	object, err := bindings.GetTemplate(ctx, f.Client, key)
	if err != nil {
		return err
	}
	switch {
	case object == nil && key.Namespace != "":
		return fmt.Errorf("the fleet has no %s; is it in another namespace (-n)?", key)
	case object == nil:
		return fmt.Errorf("the fleet has no %s", key)
	}
	return fmt.Errorf("%s is not propagated: no PropagationPolicy or ClusterPropagationPolicy selects it (or its "+
		"namespace is never propagated); see spec.resourceSelectors of the policies", key)
}

func explainSummary(out io.Writer, b bindings.Binding) {
	spec, status := b.BindingSpec(), b.BindingStatus()
	printLine(out, "%s %s", spec.Resource.Kind, nameIn(spec.Resource.Namespace, spec.Resource.Name))
	printLine(out, "Policy:     %s", policyOf(b))
	if scheduled := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionScheduled); scheduled != nil {
		printLine(out, "Scheduled:  %s (%s)%s", scheduled.Status, scheduled.Reason, unlessTrue(scheduled))
	} else {
		fmt.Fprintln(out, "Scheduled:  not decided yet")
	}
	if status.SchedulerObservedAffinityName != "" {
		printLine(out, "Affinity:   %s", status.SchedulerObservedAffinityName)
	}
	if status.Decision == nil {
		return
	}
	if karmada.IsWorkload(spec) {
		printLine(out, "Division:   %s", division(spec, status.Decision.Strategy))
	}
	for _, skipped := range status.Decision.SkippedAffinities {
		printLine(out, "Skipped:    affinity %s: %s", skipped.AffinityName, skipped.Message)
	}
	for _, g := range status.Decision.Groups {
		printLine(out, "Group:      %s, %d clusters, score %d%s", g.Name, g.Clusters, g.Score,
			map[bool]string{true: ", chosen"}[g.Chosen])
	}
}

func unlessTrue(condition *metav1.Condition) string {
	if condition.Status == metav1.ConditionTrue {
		return ""
	}
	return ": " + condition.Message
}

// explainGrowth tells what becomes of the machines that an object without a place may get.
func (f *Fleet) explainGrowth(ctx context.Context, out io.Writer, b bindings.Binding) error {
	placement := b.BindingSpec().Placement
	if placement == nil || placement.Growth == "" ||
		meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.ConditionScheduled) {
		return nil
	}
	growth := &fleetv1alpha1.FleetGrowth{}
	err := f.Client.Get(ctx, client.ObjectKey{Name: placement.Growth}, growth)
	switch {
	case apierrors.IsNotFound(err):
		printLine(out, "Growth:     none: the fleet has no FleetGrowth %q, which spec.placement.growth of the "+
			"policy names (kubectl get fleetgrowths)", placement.Growth)
		return nil
	case err != nil:
		return fmt.Errorf("reading FleetGrowth %s: %w", placement.Growth, err)
	}
	message := "not looked at yet"
	if satisfied := meta.FindStatusCondition(growth.Status.Conditions,
		fleetv1alpha1.GrowthSatisfied); satisfied != nil {
		message = satisfied.Message
	}
	printLine(out, "Growth:     FleetGrowth %s: %s", growth.Name, message)
	return nil
}

// division tells what is divided, and how.
func division(spec *workv1alpha2.ResourceBindingSpec, strategy string) string {
	if len(spec.Components) == 0 {
		return fmt.Sprintf("%s of %d replicas", strategy, spec.Replicas)
	}
	var components []string
	for _, c := range spec.Components {
		components = append(components, fmt.Sprintf("%s %d", c.Name, c.Replicas))
	}
	list := strings.Join(components, ", ")
	if karmada.Unit(spec) != nil {
		return "none: one cluster has all of " + list + "; AVAILABLE counts such sets"
	}
	return "none: every chosen cluster has all of " + list
}

// policyOf names the policy that a binding was made for, or the objects that need it.
func policyOf(b bindings.Binding) string {
	if name := policies.ClaimedBy(b); name != "" {
		return name
	}
	var needed []string
	for _, by := range b.BindingSpec().RequiredBy {
		needed = append(needed, by.Name)
	}
	if len(needed) > 0 {
		return "none; it follows " + strings.Join(needed, ", ")
	}
	return "none"
}

// explainClusters prints a line per cluster: candidates in the order of preference, then the rejected ones.
func explainClusters(out io.Writer, b bindings.Binding) error {
	decision := b.BindingStatus().Decision
	if decision == nil {
		return nil
	}
	if decision.Ranking == "" && len(decision.Rejections) == 0 {
		fmt.Fprintln(out, withoutClusters(b.BindingSpec()))
		return nil
	}
	ranking, err := decision.Ranking.Clusters()
	if err != nil {
		return fmt.Errorf("status.decision.ranking of the binding: %w", err)
	}
	reasons := map[string]string{}
	for _, rejection := range decision.Rejections {
		for cluster := range strings.FieldsSeq(rejection.Clusters) {
			reasons[cluster] = rejection.Reason + ": " + rejection.Message
		}
	}
	fmt.Fprintln(out)
	t := newTable(out, "CLUSTER", "FITS", "SCORE", "WEIGHT", "AVAILABLE", "REPLICAS", "WHY")
	for _, c := range ranking {
		why := reasons[c.Name]
		delete(reasons, c.Name)
		if c.Chosen {
			why = stateIn(b, c.Name)
		}
		t.row(c.Name, "yes", strconv.FormatInt(c.Score, 10), nonZero(c.Weight), availability(c), replicasOf(b, c), why)
	}
	var rejected []string
	for cluster := range reasons {
		rejected = append(rejected, cluster)
	}
	slices.Sort(rejected)
	for _, cluster := range rejected {
		t.row(cluster, "no", "", "", "", "", reasons[cluster])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if decision.Omitted > 0 {
		printLine(out, "… and %d clusters more that were left out", decision.Omitted)
	}
	return nil
}

// withoutClusters says why a decision tells of no cluster. Only what is divided by room keeps a decision when a fleet
// becomes newer.
func withoutClusters(spec *workv1alpha2.ResourceBindingSpec) string {
	why := "The decision doesn't tell of clusters: the fleet had none, or an earlier version\nof it decided."
	if len(spec.Clusters) > 0 {
		why = "An earlier version of the fleet decided, whose reasons aren't kept any more."
	}
	return "\n" + why + `
It is decided anew when the policy's placement or the number of replicas
changes, or for a WorkloadRebalancer, which may move replicas.`
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func availability(c workv1alpha2.RankedCluster) string {
	if c.Available == nil {
		return ""
	}
	return strconv.FormatInt(*c.Available, 10)
}

func replicasOf(b bindings.Binding, c workv1alpha2.RankedCluster) string {
	if !c.Chosen || !karmada.IsWorkload(b.BindingSpec()) || len(b.BindingSpec().Components) > 0 {
		return ""
	}
	return strconv.Itoa(int(c.Replicas))
}

// stateIn is what became of the object in a cluster that was chosen.
func stateIn(b bindings.Binding, cluster string) string {
	for _, item := range b.BindingStatus().AggregatedStatus {
		if item.ClusterName != cluster {
			continue
		}
		if !item.Applied {
			return "chosen; not applied: " + orElse(item.AppliedMessage, "not yet")
		}
		return "chosen; applied, " + strings.ToLower(orElse(string(item.Health), string(workv1alpha2.ResourceUnknown)))
	}
	return "chosen; not reported yet"
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// explainOverrides prints the fields that override policies set in each cluster that has the object.
func (f *Fleet) explainOverrides(ctx context.Context, out io.Writer, b bindings.Binding,
	key bindings.TemplateKey) error {
	template, err := bindings.GetTemplate(ctx, f.Client, key)
	if err != nil || template == nil {
		return err
	}
	policies, err := overrides.List(ctx, f.Client, key.Namespace)
	if err != nil {
		return err
	}
	t := newTable(out, "CLUSTER", "FIELD", "VALUE", "SET BY")
	var rows int
	var failures []error
	for _, target := range b.BindingSpec().Clusters {
		settings, err := f.overridesIn(ctx, target.Name, template, policies)
		if err != nil {
			failures = append(failures, fmt.Errorf("cluster %s: %w", target.Name, err))
			continue
		}
		for _, s := range settings {
			if rows++; rows == 1 {
				fmt.Fprintln(out)
			}
			t.row(target.Name, s.Path, shortValue(s.Value), s.Policy+" "+s.Rule)
		}
	}
	if rows > 0 {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

func (f *Fleet) overridesIn(ctx context.Context, name string, template *unstructured.Unstructured,
	policies []overrides.Policy) ([]overrides.Setting, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := f.Client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil, err
	}
	return overrides.Trace(template, karmada.Identity(cluster), policies)
}

// shortValue keeps a table in shape.
func shortValue(value any) string {
	if value == nil {
		return "(removed)"
	}
	const most = 60
	text := []rune(fmt.Sprint(value))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
