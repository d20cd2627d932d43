// Package loadbalancers gives Services of type LoadBalancer, in shoots of the local landscape, an address: that of a
// node, where kube-proxy takes what is sent to the ports of the Service. The firewall of the local cloud lets only
// machines of the same shoot there.
package loadbalancers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rules are what the controller may do in the cluster of its manager.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "nodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"services/status"}, Verbs: []string{"update"}},
	}
}

// Add registers the controller for the cluster of the manager.
func Add(mgr manager.Manager) error {
	r := &reconciler{client: mgr.GetClient()}
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond,
		30*time.Second)
	err := ctrl.NewControllerManagedBy(mgr).Named("load-balancers").
		For(&corev1.Service{}, builder.WithPredicates(predicate.NewPredicateFuncs(isBalanced))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.balanced),
			builder.WithPredicates(otherAddresses())).
		WithOptions(controller.Options{RateLimiter: retries}).Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of load balancers: %w", err)
	}
	return nil
}

// isBalanced tells whether an object is a Service that this controller gives an address.
func isBalanced(object client.Object) bool {
	service, ok := object.(*corev1.Service)
	return ok && service.Spec.Type == corev1.ServiceTypeLoadBalancer && service.Spec.LoadBalancerClass == nil
}

// otherAddresses passes changes of nodes after which Services may have to move.
func otherAddresses() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, isNode := e.ObjectNew.(*corev1.Node)
		return ok && isNode && !slices.Equal(readyAddresses([]corev1.Node{*before}),
			readyAddresses([]corev1.Node{*after}))
	}}
}

type reconciler struct {
	client client.Client
}

// balanced are all Services with an address of a node: there are few of them.
func (r *reconciler) balanced(ctx context.Context, _ client.Object) []reconcile.Request {
	services := &corev1.ServiceList{}
	if err := r.client.List(ctx, services); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Services stay where they are until they or another node change")
		return nil
	}
	var requests []reconcile.Request
	for i := range services.Items {
		if service := &services.Items[i]; isBalanced(service) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(service)})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler for Services.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	service := &corev1.Service{}
	if err := r.client.Get(ctx, request.NamespacedName, service); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("service %s: %w", request.NamespacedName, err)
	}
	wanted := ingressFor(service, nodes.Items)
	if apiequality.Semantic.DeepEqual(service.Status.LoadBalancer.Ingress, wanted) {
		return reconcile.Result{}, nil
	}
	updated := service.DeepCopy()
	updated.Status.LoadBalancer.Ingress = wanted
	if err := client.IgnoreNotFound(r.client.Status().Update(ctx, updated)); err != nil {
		return reconcile.Result{}, fmt.Errorf("service %s: %w", request.NamespacedName, err)
	}
	return reconcile.Result{}, nil
}

// ingressFor is the address of a Service: it stays on its node as long as that is ready. Services of other types, and
// of classes that somebody else serves, keep what they have.
func ingressFor(service *corev1.Service, nodes []corev1.Node) []corev1.LoadBalancerIngress {
	present := service.Status.LoadBalancer.Ingress
	if !isBalanced(service) {
		return present
	}
	addresses := readyAddresses(nodes)
	if len(present) == 1 && slices.Contains(addresses, present[0].IP) {
		return present
	}
	if len(addresses) == 0 {
		return nil
	}
	return []corev1.LoadBalancerIngress{{IP: addresses[0]}}
}

// readyAddresses are the internal addresses of nodes that are ready, in the order of the nodes' names.
func readyAddresses(nodes []corev1.Node) []string {
	nodes = slices.SortedFunc(slices.Values(nodes),
		func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var addresses []string
	for i := range nodes {
		node := &nodes[i]
		if !isReady(node) {
			continue
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				addresses = append(addresses, address.Address)
				break
			}
		}
	}
	return addresses
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}
