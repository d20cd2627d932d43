package dashboard

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

// certificate of the garden, as operators look after it.
type certificate struct {
	// What it is for: kube-apiserver, authority of that, or dashboard.
	What    string    `json:"what"`
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
}

// certificates tells until when those are good that the garden's API and this server show to everybody.
func (s *server) certificates(w http.ResponseWriter, r *http.Request, current *session.Session) {
	garden, err := s.clusters.Garden(current.Credential)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	shown, err := garden.Certificate(r.Context())
	if err != nil {
		reply.Failure(w, err)
		return
	}
	items := []certificate{expiryOf("kube-apiserver", shown)}
	for _, authority := range s.clusters.Authorities() {
		items = append(items, expiryOf("authority", authority))
	}
	if s.certificateFiles[0] != "" {
		pair, err := tls.LoadX509KeyPair(s.certificateFiles[0], s.certificateFiles[1])
		if err != nil {
			reply.Failure(w, err)
			return
		}
		items = append(items, expiryOf("dashboard", pair.Leaf))
	}
	reply.JSON(w, http.StatusOK, map[string]any{"items": items})
}

func expiryOf(what string, c *x509.Certificate) certificate {
	name := c.Subject.CommonName
	if name == "" && len(c.DNSNames) > 0 {
		name = c.DNSNames[0]
	}
	return certificate{What: what, Name: name, Expires: c.NotAfter.UTC()}
}
