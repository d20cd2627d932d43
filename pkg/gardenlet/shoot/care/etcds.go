package care

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// recoveryAge is how long a recovery is told of in conditions, and may still become an event.
const recoveryAge = 7 * 24 * time.Hour

// etcdView is what is known of one etcd of a control plane.
type etcdView struct {
	// name is that of its StatefulSet.
	name    string
	members []memberView
}

// memberView is what is known of one member of an etcd. Its texts were written by the etcd; they are bounded.
type memberView struct {
	// name is that of its pod; that of its etcd if it is the only member.
	name string
	// told is what its steward tells; nil where that is not known, for the reason err.
	told *status.Status
	err  error
	// lastWords are those with which a container ended that does not run; empty if it does.
	lastWords string
}

// lookAtEtcds asks the etcds of a control plane, side by side.
func (c *Reconciler) lookAtEtcds(ctx context.Context, namespace string) []etcdView {
	roles := []etcdcomponent.Role{etcdcomponent.Main, etcdcomponent.Events}
	views := make([]etcdView, len(roles))
	var asking sync.WaitGroup
	for i, role := range roles {
		asking.Go(func() { views[i] = c.lookAtEtcd(ctx, namespace, role) })
	}
	asking.Wait()
	return views
}

// lookAtEtcd asks all members of one, side by side.
func (c *Reconciler) lookAtEtcd(ctx context.Context, namespace string, role etcdcomponent.Role) etcdView {
	view := etcdView{name: etcdcomponent.Name(role)}
	set := &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: namespace, Name: view.name}
	// Without it, the pod of a single member is looked for.
	if err := c.Seed.Get(ctx, key, set); client.IgnoreNotFound(err) != nil {
		view.members = []memberView{{name: view.name, err: fmt.Errorf("reading StatefulSet %s: %w", key, err)}}
		return view
	}
	pods := etcdcomponent.PodNames(role, max(1, ptr.Deref(set.Spec.Replicas, 1)))
	view.members = make([]memberView, len(pods))
	var asking sync.WaitGroup
	for i, pod := range pods {
		asking.Go(func() {
			view.members[i] = c.lookAtMember(ctx, client.ObjectKey{Namespace: namespace, Name: pod})
			if len(pods) == 1 {
				view.members[i].name = view.name
			}
		})
	}
	asking.Wait()
	return view
}

// lookAtMember asks one at the address of its pod: a Service leads only to those that serve.
func (c *Reconciler) lookAtMember(ctx context.Context, key client.ObjectKey) memberView {
	view := memberView{name: key.Name}
	pod := &corev1.Pod{}
	if err := c.Seed.Get(ctx, key, pod); err != nil {
		view.err = fmt.Errorf("reading Pod %s: %w", key, err)
		return view
	}
	view.lastWords = lastWords(pod)
	if pod.Status.PodIP == "" {
		view.err = fmt.Errorf("Pod %s has no address yet", key)
		return view
	}
	ask := c.Ask
	if ask == nil {
		ask = status.Ask
	}
	view.told, view.err = ask(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(etcdcomponent.HealthPort))))
	return view
}

// membersOf are the members of all etcds.
func membersOf(etcds []etcdView) []memberView {
	var all []memberView
	for _, etcd := range etcds {
		all = append(all, etcd.members...)
	}
	return all
}

// lastWords returns the error with which a container has ended that does not run now.
func lastWords(pod *corev1.Pod) string {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running != nil {
			continue
		}
		ended := cmp.Or(container.State.Terminated, container.LastTerminationState.Terminated)
		if ended == nil || ended.Message == "" {
			continue
		}
		// The log before it is JSON.
		_, words, found := strings.Cut(ended.Message, "\nError: ")
		if !found {
			words = strings.TrimPrefix(ended.Message, "Error: ")
		}
		return status.Text(words)
	}
	return ""
}

// etcdProblem returns the first reason why an etcd does not serve as it should.
func etcdProblem(etcds []etcdView) problem {
	for _, member := range membersOf(etcds) {
		if found := member.problem(); found.message != "" {
			return found
		}
	}
	return problem{}
}

func (m memberView) problem() problem {
	told := m.told
	switch {
	case m.lastWords != "":
		return problem{"EtcdFailed", fmt.Sprintf("%s does not run: %s", m.name, m.lastWords)}
	case told == nil:
		return problem{}
	case told.Phase == status.Awaiting:
		return problem{
			"EtcdAwaitsBackups", fmt.Sprintf("%s has no usable data, and waits for the store of its backups rather "+
				"than to begin without them.%s", m.name, storeWords(told.Store)),
		}
	case told.Phase == status.Restoring:
		return problem{"EtcdRestoring", m.restoring()}
	case told.Phase != status.Serving:
		return problem{"EtcdNotServing", fmt.Sprintf("%s does not serve yet: %s.", m.name, told.Phase)}
	case told.Differs != nil:
		return problem{reasonDiffers, m.name + " " + told.Differs.Describe() + " " + differenceAdvice(told.Differs)}
	case told.ReadOnly != "":
		return problem{
			"EtcdReadOnly", fmt.Sprintf("%s serves only reads and deletions: %s. Delete objects of the cluster that "+
				"nobody needs.", m.name, told.ReadOnly),
		}
	case told.Certificates != nil && told.Certificates.Refused != "":
		return problem{
			"EtcdRefusesCertificates", fmt.Sprintf("%s serves with its certificates of before, and does not take those "+
				"that it was given: %s.", m.name, told.Certificates.Refused),
		}
	}
	return problem{}
}

// reasonDiffers says that an etcd serves data that is not what it should be.
const reasonDiffers = "EtcdDataDiffers"

// differenceAdvice says what to do about it.
func differenceAdvice(d *status.Difference) string {
	if d.From == status.Members {
		return "When all members run, those that a quorum of the others does not agree with join them again by " +
			"themselves, three times within an hour."
	}
	return "A disk may have changed it. Write or delete the objects of these keys, or restore the etcd as of before."
}

// restoring says what an etcd restores its data for.
func (m memberView) restoring() string {
	message := m.name + " restores its data."
	if begun := m.told.Recovering; begun != nil {
		message = fmt.Sprintf("%s %s It restores what its backups have.", m.name, begun.Describe())
	}
	return message
}

// recovered tells of recoveries that are not long ago; empty if there were none.
func recovered(etcds []etcdView, now time.Time) string {
	var recoveries []string
	for _, member := range membersOf(etcds) {
		if member.told == nil || len(member.told.Recoveries) == 0 {
			continue
		}
		last := member.told.Recoveries[len(member.told.Recoveries)-1]
		if now.Sub(last.Finished) < recoveryAge {
			recoveries = append(recoveries, member.name+" "+last.Describe())
		}
	}
	return strings.Join(recoveries, " ")
}

// spaceConstraint says whether the etcds have room for more; nothing if none of them has told.
func spaceConstraint(etcds []etcdView) []gardencorev1beta1.Condition {
	const t = gardencorev1beta1.ShootEtcdSpaceSufficient
	known := false
	for _, member := range membersOf(etcds) {
		if member.told == nil {
			continue
		}
		known = true
		if found := spaceProblem(member.name, member.told); found.message != "" {
			return []gardencorev1beta1.Condition{
				conditions.New(t, gardencorev1beta1.ConditionFalse, found.reason, found.message),
			}
		}
	}
	if !known {
		return nil
	}
	return []gardencorev1beta1.Condition{
		conditions.New(t, gardencorev1beta1.ConditionTrue, "SpaceSufficient", "The etcds have room."),
	}
}

func spaceProblem(name string, told *status.Status) problem {
	if told.ReadOnly != "" {
		return problem{
			"NoSpace", fmt.Sprintf("%s serves only reads and deletions: %s. Delete objects of the cluster that nobody "+
				"needs; writes are served again by themselves.", name, told.ReadOnly),
		}
	}
	for _, space := range told.Space {
		if space.Level >= status.NearlyFull {
			return problem{
				"NearlyFull", fmt.Sprintf("The %s of %s is full to %d %% or more; when it is full, only reads and "+
					"deletions will be served. Delete objects of the cluster that nobody needs.", space.Of, name,
					status.NearlyFull),
			}
		}
	}
	for _, skip := range told.Skipped {
		return problem{
			"WorkSkipped", fmt.Sprintf("For lack of room, %s has skipped this since %s: %s (%s). Delete objects of "+
				"the cluster that nobody needs.", name, stamp(skip.Since), skip.What, skip.Message),
		}
	}
	return problem{}
}
