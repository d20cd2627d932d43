package apiserver

import (
	"fmt"
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/trellis-garden/trellis/pkg/apiserver/reservation"
)

// reserveIn lets all requests of a server claim what several objects share, in the etcd that holds the objects.
func reserveIn(config *genericapiserver.RecommendedConfig,
	storage storagebackend.Config) (*reservation.Reservations, error) {
	reservations, err := reservation.New(storage)
	if err != nil {
		return nil, fmt.Errorf("reservations: %w", err)
	}
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(reservations.WithReservations(handler), c)
	}
	return reservations, nil
}
