package csrapprover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

const (
	signerSelector = "spec.signerName=" + certificatesv1.KubeletServingSignerName
	// nodeLabel of a Machine names its node.
	nodeLabel = "node"
	// retryNode is how soon a request is looked at again whose node or machine is not registered completely; kubelets ask
	// for their certificate while they register.
	retryNode = 500 * time.Millisecond
	// retryFor is how long that goes on.
	retryFor = 10 * time.Minute
	// retryWatch is the pause before a watch that could not be opened is opened again.
	retryWatch = 2 * time.Second
	// watchSeconds ends a watch from the server's side, so that a dead connection does not go unnoticed for ever.
	watchSeconds = 600
)

// Reconciler keeps one watch on the certificate signing requests of each shoot. Requests are namespaces' Secrets
// `gardener-internal`.
type Reconciler struct {
	// Machines reads Machine objects of the seed.
	Machines client.Reader
	// Targets leads to the shoots.
	Targets *target.Registry
	// Context ends all watches.
	Context context.Context
	// Again asks for another Reconcile of a namespace, whose watch has ended with its target. The Secret need not change for
	// that: an event of an older version of it, told late, has a newer target forgotten as well.
	Again func(namespace string)

	mu       sync.Mutex
	watching map[string]*target.Target
}

// Reconcile starts the watch of a shoot if it is not running. It ends by itself when the target is forgotten, and asks for the
// next one.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t, err := r.Targets.Shoot(ctx, req.Namespace)
	if errors.Is(err, target.ErrNoTarget) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := t.Ready(ctx); err != nil {
		return ctrl.Result{RequeueAfter: 5 * t.RetryAfter()}, nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching[req.Namespace] == t {
		return ctrl.Result{}, nil
	}
	if r.watching == nil {
		r.watching = map[string]*target.Target{}
	}
	r.watching[req.Namespace] = t
	approver := &approver{namespace: req.Namespace, target: t, machines: r.Machines, log: ctrl.Log.WithName("csr-approver").WithValues("namespace", req.Namespace)}
	go func() {
		approver.run(r.Context)
		r.stopped(req.Namespace, t)
		if r.Context.Err() == nil {
			r.Again(req.Namespace)
		}
	}()
	return ctrl.Result{}, nil
}

// stopped forgets a watch that ended.
func (r *Reconciler) stopped(namespace string, t *target.Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching[namespace] == t {
		delete(r.watching, namespace)
	}
}

// approver serves one shoot.
type approver struct {
	namespace string
	target    *target.Target
	machines  client.Reader
	log       logr.Logger
}

// run watches until the target is forgotten or ctx ends.
func (a *approver) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(a.target.Context(), cancel)
	defer stop()
	for ctx.Err() == nil {
		if err := a.watch(ctx); err != nil && ctx.Err() == nil {
			a.log.V(1).Info("Watch of certificate signing requests ended", "error", err.Error())
			select {
			case <-ctx.Done():
			case <-time.After(retryWatch):
			}
		}
	}
}

// watch opens one watch and handles its events. Without a resource version the server first sends what exists.
func (a *approver) watch(ctx context.Context) error {
	seconds := int64(watchSeconds)
	w, err := a.target.Kubernetes.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{
		FieldSelector: signerSelector, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Error:
			return apierrors.FromObject(event.Object)
		case watch.Added, watch.Modified:
			if csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && pending(csr) {
				go a.decide(ctx, csr)
			}
		}
	}
	return nil
}

// decide approves a request, or tries again while its node is not known completely.
func (a *approver) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) {
	log := a.log.WithValues("csr", csr.Name, "requester", csr.Spec.Username)
	request, err := Parse(csr)
	if err != nil {
		log.Info("Not approving a kubelet's serving certificate", "reason", err.Error())
		return
	}
	deadline := csr.CreationTimestamp.Add(retryFor)
	for {
		reason, err := a.unknown(ctx, request)
		if err == nil && reason == "" {
			if err = a.approve(ctx, csr); err == nil {
				log.Info("Approved a kubelet's serving certificate")
				return
			}
		}
		if ctx.Err() != nil || apierrors.IsNotFound(err) {
			return
		}
		if time.Now().After(deadline) {
			log.Info("Not approving a kubelet's serving certificate", "reason", reason, "error", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryNode):
		}
	}
}

// unknown says what is not known yet about the requester; empty when all is.
func (a *approver) unknown(ctx context.Context, request Request) (string, error) {
	machines := &metav1.PartialObjectMetadataList{}
	machines.SetGroupVersionKind(machineListKind)
	if err := a.machines.List(ctx, machines, client.InNamespace(a.namespace), client.MatchingLabels{nodeLabel: request.NodeName}); err != nil {
		return "", fmt.Errorf("listing the machines of node %s: %w", request.NodeName, err)
	}
	if len(machines.Items) == 0 {
		return "no Machine has the label " + nodeLabel + "=" + request.NodeName, nil
	}
	node := &corev1.Node{}
	err := a.target.Client.Get(ctx, client.ObjectKey{Name: request.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return "the Node does not exist", nil
	}
	if err != nil {
		return "", err
	}
	if missing := request.Missing(node); len(missing) > 0 {
		return fmt.Sprintf("the Node does not have the names or addresses %v", missing), nil
	}
	return "", nil
}

// approve writes the decision. A conflict means that someone else wrote one.
func (a *approver) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "RequestApproved", Message: "The kubelet's names and addresses are those of its node, which is a machine of this shoot.",
		LastUpdateTime: metav1.Now(),
	})
	_, err := a.target.Kubernetes.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
