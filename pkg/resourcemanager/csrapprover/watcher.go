package csrapprover

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

const (
	signerSelector = "spec.signerName=" + certificatesv1.KubeletServingSignerName
	// nodeLabel of a Machine names its node.
	nodeLabel = "node"
	// retryFor is how long a request is looked at again whose node or machine is not registered completely; kubelets ask for their certificate
	// while they register.
	retryFor = 10 * time.Minute
	// retryWatch is the pause before a watch that could not be opened is opened again.
	retryWatch = 2 * time.Second
	// retryRoom is the pause before requests that were left out are asked for.
	retryRoom = 10 * time.Second
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
	approver := newApprover(req.Namespace, t, r.Machines)
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

// approver serves one shoot. Its watch puts requests into a queue, and one worker decides about them.
type approver struct {
	namespace string
	target    *target.Target
	queue     *queue
	nodes     *nodes
	log       logr.Logger
	// logged bounds what a shoot's owner can fill the seed's log with.
	logged flowcontrol.RateLimiter
}

func newApprover(namespace string, t *target.Target, machines client.Reader) *approver {
	return &approver{
		namespace: namespace, target: t, queue: newQueue(), nodes: &nodes{namespace: namespace, machines: machines, target: t.Client},
		log:    ctrl.Log.WithName("csr-approver").WithValues("namespace", namespace),
		logged: flowcontrol.NewTokenBucketRateLimiter(1, 20),
	}
}

// run watches until the target is forgotten or ctx ends.
func (a *approver) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(a.target.Context(), cancel)
	defer stop()
	context.AfterFunc(ctx, a.queue.work.ShutDown)
	go a.work(ctx)
	for ctx.Err() == nil {
		if err := a.watch(ctx); err != nil && ctx.Err() == nil {
			a.log.V(1).Info("Watch of certificate signing requests ended", "error", err.Error())
			pause(ctx, retryWatch)
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, period time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(period):
	}
}

// watch opens one watch and handles its events, until there is place again for requests that had to be left out. Without a resource version the
// server first sends what exists.
func (a *approver) watch(ctx context.Context) error {
	seconds := int64(watchSeconds)
	w, err := a.target.Kubernetes.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{
		FieldSelector: signerSelector, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-a.queue.room:
			pause(ctx, retryRoom)
			return nil
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if err := a.handle(event); err != nil {
				return err
			}
		}
	}
}

// handle queues what is new and forgets what is decided or gone.
func (a *approver) handle(event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	if event.Type == watch.Deleted || !pending(csr) {
		a.queue.forget(csr.Name)
		return nil
	}
	request, err := Parse(csr)
	if err != nil {
		a.refused(csr.Name, csr.Spec.Username, err.Error())
		return nil
	}
	a.queue.add(csr.Name, candidate{uid: csr.UID, request: request, deadline: csr.CreationTimestamp.Add(retryFor)})
	return nil
}

// work decides about queued requests, one after the other, until the queue is shut down.
func (a *approver) work(ctx context.Context) {
	for {
		name, shutdown := a.queue.work.Get()
		if shutdown {
			return
		}
		if found, known := a.queue.get(name); known {
			if a.decide(ctx, name, found) {
				a.queue.forget(name)
			} else {
				a.queue.again(name)
			}
		}
		a.queue.work.Done(name)
	}
}

// decide approves a request, and says whether that was the last look at it. Its node may not be known completely yet.
func (a *approver) decide(ctx context.Context, name string, found candidate) (done bool) {
	reason, err := a.nodes.unknown(ctx, found.request)
	if err == nil && reason == "" {
		if err = a.approve(ctx, name, found); err == nil {
			return true
		}
	}
	if ctx.Err() != nil || apierrors.IsNotFound(err) {
		return true
	}
	if time.Now().Before(found.deadline) {
		return false
	}
	if err != nil {
		reason = err.Error()
	}
	a.refused(name, nodeUserPrefix+found.request.NodeName, reason)
	return true
}

func (a *approver) refused(name, requester, reason string) {
	if a.logged.TryAccept() {
		a.log.Info("Not approving a kubelet's serving certificate", "csr", name, "requester", requester, "reason", reason)
	}
}

// approve writes the decision, if the request is still the one that was checked. A conflict means that someone else wrote one.
func (a *approver) approve(ctx context.Context, name string, found candidate) error {
	requests := a.target.Kubernetes.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Get(ctx, name, metav1.GetOptions{})
	if err != nil || csr.UID != found.uid || !pending(csr) {
		return err
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "RequestApproved", Message: "The kubelet's names and addresses are those of its node, which is a machine of this shoot.",
		LastUpdateTime: metav1.Now(),
	})
	_, err = requests.UpdateApproval(ctx, name, csr, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil
	}
	if err == nil {
		a.log.Info("Approved a kubelet's serving certificate", "csr", name, "requester", csr.Spec.Username)
	}
	return err
}
