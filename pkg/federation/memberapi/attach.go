package memberapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
	"github.com/trellis-garden/trellis/pkg/reply"
)

// splitAttachPath finds the Cluster whose agent opens a tunnel.
func splitAttachPath(path string) (name string, ok bool) {
	name, found := strings.CutPrefix(path, prefix+"/clusters/")
	name, isAttach := strings.CutSuffix(name, "/"+tunnel.Subresource)
	return name, found && isAttach && name != "" && !strings.Contains(name, "/")
}

// attach takes the tunnel of a member's agent, and of nobody else: the right to the subresource is not enough.
func (s *Server) attach(w http.ResponseWriter, r *http.Request, who caller, name string) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := s.fleet.Get(r.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		reply.Refusal(w, err)
		return
	}
	switch {
	case r.Method != http.MethodPost:
		reply.Refusal(w, apierrors.NewMethodNotSupported(clustersResource, r.Method))
		return
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull || who.user != registration.AgentUser(cluster):
		reply.Refusal(w, apierrors.NewForbidden(clustersResource, name,
			errors.New("only the agent of the member opens a tunnel to it, by the certificate that was accepted")))
		return
	}
	s.log.Info("The agent of a member opens a tunnel", "member", name)
	stays := func() bool { return s.hasAgent(r.Context(), name, cluster.UID) }
	if err := s.tunnels.Attach(w, r, name, cluster.UID, stays); err != nil {
		reply.Refusal(w, err)
	}
}

// hasAgent tells whether a member is still the same, with an agent. While it cannot be found out, nothing changes.
func (s *Server) hasAgent(ctx context.Context, name string, uid types.UID) bool {
	cluster := &clusterv1alpha1.Cluster{}
	err := s.fleet.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return cluster.UID == uid && cluster.Spec.SyncMode == clusterv1alpha1.Pull
}

// byAgent is the line through the tunnel of a member's agent. While that is opened anew, who asks waits a moment.
func (s *Server) byAgent(ctx context.Context, who caller, cluster *clusterv1alpha1.Cluster) (*line, error) {
	found, since, err := s.tunnels.Await(ctx, cluster.Name, cluster.UID, who.user)
	if err != nil {
		return nil, tooMany(cluster.Name, err)
	}
	if found == nil {
		return nil, noTunnel(cluster.Name, since)
	}
	return &line{
		base: &url.URL{Scheme: "https", Host: cluster.Name}, transport: found,
		refusal: "it does not accept what its agent asks with; look at the agent's log",
	}, nil
}

// noTunnel says what to look at. Who asks is told to try again while the agent may only have lost its tunnel.
func noTunnel(name string, since time.Time) error {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf("member %s has an agent, which has had no tunnel to this "+
		"process of the fleet since %s: look at the condition Ready of `kubectl get cluster %s -o yaml`, and in the "+
		"member at the log of deployment/agent; agents that were invited by an older version of the fleet get the "+
		"right to open one by `trellisctl register %s`", name, since.UTC().Format(time.RFC3339), name, name))
	if time.Since(since) < tunnel.Soon {
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	return err
}
