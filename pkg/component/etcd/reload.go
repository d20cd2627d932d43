package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// peersAtStart is the annotation of a pod template with the name of the Secret with the authorities of peers that
	// its pod began with, at the latest.
	peersAtStart = "etcd.trellis.garden/peer-authorities"
	// servedWith is the annotation of a single member's Secret with the checksum of what it was seen to serve with.
	servedWith = "etcd.trellis.garden/served-with"
	// RemountAsked is the annotation of a pod with the time at which its kubelet was asked to look at what it mounts.
	RemountAsked = "etcd.trellis.garden/remount-asked-at"
	// remountAfter is when it is asked again.
	remountAfter = 5 * time.Second
)

// Ask asks the steward in a pod for its status.
type Ask func(ctx context.Context, c client.Reader, pod client.ObjectKey) (*status.Status, error)

// askAtAddress asks at the address of the pod: a Service leads only to those that serve.
func askAtAddress(ctx context.Context, c client.Reader, key client.ObjectKey) (*status.Status, error) {
	pod := &corev1.Pod{}
	if err := c.Get(ctx, key, pod); err != nil {
		return nil, fmt.Errorf("reading Pod %s: %w", key, err)
	}
	if pod.Status.PodIP == "" {
		return nil, fmt.Errorf("Pod %s has no address yet", key)
	}
	return status.Ask(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(HealthPort))))
}

// NewReloading returns the component of an etcd whose single member serves on while its certificates and authorities
// change: its pod mounts Secrets whose content changes, and its steward takes that over. Wait asks the steward; with
// nil, at the address of its pod.
//
// Several members are replaced one after another as with New, as long as others serve: etcd reads only at its start
// which peers it trusts. So a single one, too, is started again before others join it after such a change.
func NewReloading(c client.Client, namespace string, manager secrets.Manager, values Values,
	ask Ask) component.Component {
	if ask == nil {
		ask = askAtAddress
	}
	values.Reloads = true
	return &deployer{client: c, namespace: namespace, secrets: manager, values: values.withDefaults(), ask: ask}
}

// ownSecretName is the Secret with what a single member serves clients with, ownPeerSecretName that with what it has
// for peers. Their names stay, and their content changes.
func ownSecretName(role Role) string     { return Name(role) + "-certificates" }
func ownPeerSecretName(role Role) string { return Name(role) + "-peer-certificates" }

// areOwn says whether a single member mounts Secrets of its own.
func (n secretNames) areOwn(role Role) bool { return n.ca == ownSecretName(role) }

// ofSingle are the Secrets that a single member mounts when it is to have what is in others, beside those of before.
func (n secretNames) ofSingle(v Values, before secretNames, asleep bool) secretNames {
	if !v.Reloads {
		return n
	}
	own, peer := ownSecretName(v.Role), ownPeerSecretName(v.Role)
	single := secretNames{ca: own, server: own, peerCA: peer, peer: peer, peersAtStart: n.peerCA}
	if before.areOwn(v.Role) && !asleep {
		// Another one would replace the pod.
		single.peersAtStart = before.peersAtStart
	}
	return single
}

// annotations are those of a pod template.
func (n secretNames) annotations() map[string]string {
	if n.peersAtStart == "" {
		return nil
	}
	return map[string]string{peersAtStart: n.peersAtStart}
}

// isAsleep says whether a StatefulSet has no pods.
func isAsleep(set *appsv1.StatefulSet) bool { return ptr.Deref(set.Spec.Replicas, 1) == 0 }

// generated is what an etcd serves with.
type generated struct{ ca, server, peerCA, peer *corev1.Secret }

func (g generated) names() secretNames {
	return secretNames{ca: g.ca.Name, server: g.server.Name, peerCA: g.peerCA.Name, peer: g.peer.Name}
}

// own are the Secrets of a single member with what was generated.
func (g generated) own(namespace string, role Role) (own, peer *corev1.Secret) {
	secret := func(name string, ca, certificate *corev1.Secret) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: objectMeta(namespace, name, role), Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{
				secrets.DataKeyCertificateBundle: ca.Data[secrets.DataKeyCertificateBundle],
				secrets.DataKeyCertificate:       certificate.Data[secrets.DataKeyCertificate],
				secrets.DataKeyPrivateKey:        certificate.Data[secrets.DataKeyPrivateKey],
			},
		}
	}
	return secret(ownSecretName(role), g.ca, g.server), secret(ownPeerSecretName(role), g.peerCA, g.peer)
}

// checksumOf what a single member is to serve clients with.
func checksumOf(own *corev1.Secret) string {
	return status.CertificatesChecksum(own.Data[secrets.DataKeyCertificateBundle], own.Data[secrets.DataKeyCertificate])
}

// keepOwn writes the Secrets of a single member, also when others are to join it. One that begins now serves with them;
// of one that runs, settle is to find that out.
func (d *deployer) keepOwn(ctx context.Context, present *appsv1.StatefulSet, next step, g generated) error {
	role := d.values.Role
	isMounted := present != nil && mountedSecrets(present).areOwn(role)
	if !isMounted && !next.names.areOwn(role) {
		return nil
	}
	own, peer := g.own(d.namespace, role)
	served := checksumOf(own)
	if isMounted && !isAsleep(present) {
		before := &corev1.Secret{}
		if err := d.client.Get(ctx, client.ObjectKeyFromObject(own), before); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(own), err)
		}
		served = before.Annotations[servedWith]
	}
	own.Annotations = map[string]string{servedWith: served}
	return component.Apply(ctx, d.client, own, peer)
}

// ownSecrets are those of a single member, by their names only.
func (d *deployer) ownSecrets() []client.Object {
	return []client.Object{
		&corev1.Secret{ObjectMeta: d.meta(ownSecretName(d.values.Role))},
		&corev1.Secret{ObjectMeta: d.meta(ownPeerSecretName(d.values.Role))},
	}
}

// settle ends what a StatefulSet has begun whose pods are all of its newest template: a single member has to serve
// clients with what its Secret has, and of several none mounts that any more.
func (d *deployer) settle(ctx context.Context, set *appsv1.StatefulSet) error {
	switch {
	case d.ask == nil:
		return nil
	case isOfSeveral(set):
		return component.Delete(ctx, d.client, d.ownSecrets()...)
	case isAsleep(set) || !mountedSecrets(set).areOwn(d.values.Role):
		return nil
	}
	own := &corev1.Secret{ObjectMeta: d.meta(ownSecretName(d.values.Role))}
	if err := d.client.Get(ctx, client.ObjectKeyFromObject(own), own); err != nil {
		return fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(own), err)
	}
	checksum := checksumOf(own)
	if own.Annotations[servedWith] == checksum {
		return nil
	}
	if err := d.awaitServing(ctx, checksum); err != nil {
		return err
	}
	before := own.DeepCopy()
	own.Annotations = component.Merge(own.Annotations, map[string]string{servedWith: checksum})
	if err := d.client.Patch(ctx, own, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("noting with what %s serves: %w", set.Name, err)
	}
	return nil
}

// awaitServing waits until a single member serves with what has a checksum. The kubelet looks at Secrets once a minute,
// and at once when a pod changes: so its pod is changed.
func (d *deployer) awaitServing(ctx context.Context, checksum string) error {
	var asked time.Time
	key := client.ObjectKey{Namespace: d.namespace, Name: PodNames(d.values.Role, 1)[0]}
	return component.WaitUntil(ctx, func(ctx context.Context) error {
		told, err := d.ask(ctx, d.client, key)
		if err == nil {
			err = servesWith(told, checksum)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("Pod %s does not serve with the newest certificates yet: %w", key, err)
		if time.Since(asked) < remountAfter {
			return err
		}
		asked = time.Now()
		return errors.Join(err, d.askRemount(ctx, key, asked))
	})
}

// servesWith tells why an etcd does not serve clients with what has a checksum.
func servesWith(told *status.Status, checksum string) error {
	switch served := told.Certificates; {
	case told.Phase != status.Serving:
		return fmt.Errorf("it is %s", told.Phase)
	case served == nil:
		return errors.New("it does not tell with what it serves")
	case served.Checksum == checksum:
		return nil
	case served.Refused != "":
		return fmt.Errorf("it does not take those that are mounted: %s", served.Refused)
	}
	return errors.New("it serves with others")
}

// askRemount has the kubelet mount the newest content of Secrets.
func (d *deployer) askRemount(ctx context.Context, key client.ObjectKey, at time.Time) error {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = key.Namespace, key.Name
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, RemountAsked, at.UTC().Format(time.RFC3339Nano))
	if err := d.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("asking for the newest Secrets: %w", err)
	}
	return nil
}
