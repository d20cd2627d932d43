// Package loadbalancers gives Services of type LoadBalancer, in shoots of the local landscape, an address: that of a node, where
// kube-proxy takes what is sent to the ports of the Service. The firewall of the local cloud lets only machines of the same shoot
// there.
package loadbalancers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// everything is the only key of the queue: there are few Services of this type.
const everything = "everything"

// Controller writes the addresses of Services.
type Controller struct {
	client    kubernetes.Interface
	log       logr.Logger
	services  corelisters.ServiceLister
	nodes     corelisters.NodeLister
	synced    []cache.InformerSynced
	informers []cache.SharedIndexInformer
	queue     workqueue.TypedRateLimitingInterface[string]
	start     func(stop <-chan struct{})
}

// Rules are what a controller may do in the cluster of its client.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "nodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"services/status"}, Verbs: []string{"update"}},
	}
}

// New returns a controller for the cluster of the client.
func New(client kubernetes.Interface, log logr.Logger) *Controller {
	factory := informers.NewSharedInformerFactory(client, 0)
	services, nodes := factory.Core().V1().Services(), factory.Core().V1().Nodes()
	c := &Controller{
		client: client, log: log, services: services.Lister(), nodes: nodes.Lister(),
		synced: []cache.InformerSynced{services.Informer().HasSynced, nodes.Informer().HasSynced},
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 30*time.Second)),
		start:  factory.Start,
	}
	c.informers = []cache.SharedIndexInformer{services.Informer(), nodes.Informer()}
	return c
}

// watch has every change looked at.
func (c *Controller) watch() error {
	enqueue := func(any) { c.queue.Add(everything) }
	for _, informer := range c.informers {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
		})
		if err != nil {
			return fmt.Errorf("watching services and nodes: %w", err)
		}
	}
	return nil
}

// Run works until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.watch(); err != nil {
		return err
	}
	c.start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return nil
		}
		if err := c.reconcile(ctx); err != nil {
			c.log.Error(err, "Writing the addresses of load balancers failed")
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

func (c *Controller) reconcile(ctx context.Context) error {
	services, err := c.services.List(labels.Everything())
	if err != nil {
		return err
	}
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, service := range services {
		wanted := ingressFor(service, nodes)
		if apiequality.Semantic.DeepEqual(service.Status.LoadBalancer.Ingress, wanted) {
			continue
		}
		updated := service.DeepCopy()
		updated.Status.LoadBalancer.Ingress = wanted
		_, err := c.client.CoreV1().Services(service.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("service %s/%s: %w", service.Namespace, service.Name, err)
		}
	}
	return nil
}

// ingressFor is the address of a Service: it stays on its node as long as that is ready. Services of other types, and of classes that
// somebody else serves, keep what they have.
func ingressFor(service *corev1.Service, nodes []*corev1.Node) []corev1.LoadBalancerIngress {
	present := service.Status.LoadBalancer.Ingress
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.LoadBalancerClass != nil {
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
func readyAddresses(nodes []*corev1.Node) []string {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var addresses []string
	for _, node := range nodes {
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
