package apiserver

import (
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-garden/trellis/pkg/apiserver/registry"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
)

// seedAuthorization decides about gardenlets in this process, and answers the garden's kube-apiserver that asks about
// them.
type seedAuthorization struct {
	authorizer *seedauthorizer.Authorizer
	feeds      atomic.Pointer[seedauthorizer.Feeds]
}

// authorizeSeeds puts the seed authorizer before the server's own. It has no opinion before start has filled its graph.
func authorizeSeeds(config *genericapiserver.RecommendedConfig) *seedAuthorization {
	s := &seedAuthorization{}
	s.authorizer = &seedauthorizer.Authorizer{Graph: seedauthorizer.NewGraph(), Synced: s.synced}
	config.Authorization.Authorizer = union.New(
		authorizer.AuthorizerFunc(seedauthorizer.PathAuthorizer), s.authorizer, config.Authorization.Authorizer,
	)
	return s
}

func (s *seedAuthorization) synced() bool {
	feeds := s.feeds.Load()
	return feeds != nil && feeds.Synced()
}

// start feeds the graph from the server's stores once it serves, and answers at the path of the authorizer. The server
// is not ready before the graph is complete.
func (s *seedAuthorization) start(server *genericapiserver.GenericAPIServer, stores registry.Stores,
	client kubernetes.Interface) error {
	feeds, err := seedauthorizer.NewFeeds(s.authorizer.Graph,
		func(resource schema.GroupResource) (seedauthorizer.Storage, bool) {
			store, found := stores[resource]
			return store, found
		}, client)
	if err != nil {
		return err
	}
	s.feeds.Store(feeds)
	server.Handler.NonGoRestfulMux.Handle(seedauthorizer.Path, seedauthorizer.Handler(s.authorizer))
	err = server.AddReadyzChecks(healthz.NamedCheck("seed-authorizer", func(*http.Request) error {
		if !feeds.Synced() {
			return errors.New("it is not known yet what belongs to which seed")
		}
		return nil
	}))
	return errors.Join(err, server.AddPostStartHook("feed-seed-authorizer",
		func(hook genericapiserver.PostStartHookContext) error {
			go feeds.Run(hook.Context)
			return nil
		}))
}
