package storetest

import (
	"cmp"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// Swift is the part of OpenStack Swift that a store needs, and Keystone. It verifies passwords, tokens, and the
// checksums of what is put.
type Swift struct {
	Server
	// Lifetime of tokens, as the server tells it.
	Lifetime time.Duration
	// Catalog is what tokens come with.
	Catalog any

	tokens   map[string]bool
	issued   int
	password string
	// segments are the names of those that manifests have, by object.
	segments map[string][]string
}

// Region is one of those in the catalog.
const Region = "here"

const (
	swiftUser, swiftDomain, swiftProject = "user", "domain", "project"
	// ApplicationCredential is the id of one whose secret is the password.
	ApplicationCredential = "3fd8-application"
	swiftAccount          = "/v1/AUTH_project"
)

// NewSwift starts a server with an empty container, which ends with the test.
func NewSwift(t *testing.T) *Swift {
	t.Helper()
	s := &Swift{
		Lifetime: time.Hour, tokens: map[string]bool{}, password: "pass-1-word", segments: map[string][]string{},
	}
	s.start(t, s.answer)
	endpoint := func(region, kind, address string) map[string]string {
		return map[string]string{"region": region, "region_id": region, "interface": kind, "url": address}
	}
	s.Catalog = []map[string]any{
		{"type": "compute", "endpoints": []any{endpoint(Region, "public", "https://compute.example.com")}},
		{"type": "object-store", "endpoints": []any{
			endpoint(Region, "internal", "https://internal.example.com"),
			endpoint(Region, "public", s.URL+swiftAccount),
			endpoint("there", "public", "https://there.example.com"),
		}},
	}
	return s
}

// Options are those of a store in the server's container, with the first password.
func (s *Swift) Options() store.SwiftOptions {
	credentials := s.Credentials()
	return store.SwiftOptions{
		Connection: s.connection(), AuthURL: s.URL + "/v3", Region: Region, Bucket: s.Bucket,
		Credentials: func() (store.SwiftCredentials, error) { return credentials, nil },
	}
}

// Credentials are those that the server takes.
func (s *Swift) Credentials() store.SwiftCredentials {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.SwiftCredentials{
		Username: swiftUser, Password: s.password, DomainName: swiftDomain, TenantName: swiftProject,
	}
}

// Rotate has the server take another password only. Tokens of the one before are no longer taken.
func (s *Swift) Rotate(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.password = password
	clear(s.tokens)
}

// Revoke has the server take none of the tokens that it has issued.
func (s *Swift) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Issued is how many tokens there were.
func (s *Swift) Issued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued
}

func (s *Swift) answer(w http.ResponseWriter, r request) {
	path, found := strings.CutPrefix(r.URL.Path, swiftAccount+"/")
	container, name, _ := strings.Cut(path, "/")
	switch {
	case r.URL.Path == "/v3/auth/tokens" && r.Method == http.MethodPost:
		s.issue(w, r)
	case !found || !s.tokens[r.Header.Get("X-Auth-Token")]:
		http.Error(w, "Unauthorized: "+r.Header.Get("X-Auth-Token"), http.StatusUnauthorized)
	case container != s.Bucket:
		http.Error(w, "The resource could not be found.", http.StatusNotFound)
	case name == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case name != "" && r.Method == http.MethodPut:
		s.put(w, r, name)
	case name != "" && r.Method == http.MethodGet:
		s.get(w, name)
	case name != "" && r.Method == http.MethodDelete:
		s.remove(w, name)
	default:
		http.Error(w, "What is this?", http.StatusBadRequest)
	}
}

type keystoneName struct{ Name string }

type keystoneUser struct {
	Name, Password string
	Domain         keystoneName
}

// keystoneRequest is what a token is asked for with.
type keystoneRequest struct {
	Auth struct {
		Identity struct {
			Methods               []string
			Password              struct{ User keystoneUser }
			ApplicationCredential struct {
				ID, Name, Secret string
				User             keystoneUser
			} `json:"application_credential"`
		}
		Scope *struct {
			Project struct {
				Name   string
				Domain keystoneName
			}
		}
	}
}

// permitted says whether a token may be had, with a password for a project or with an application credential.
func (s *Swift) permitted(r keystoneRequest) bool {
	identity, scope := r.Auth.Identity, r.Auth.Scope
	if len(identity.Methods) != 1 {
		return false
	}
	if identity.Methods[0] == "application_credential" {
		credential := identity.ApplicationCredential
		byName := credential.Name == "name" && credential.User.Name == swiftUser &&
			credential.User.Domain.Name == swiftDomain
		return credential.Secret == s.password && scope == nil && (credential.ID == ApplicationCredential || byName)
	}
	user := identity.Password.User
	return user.Name == swiftUser && user.Password == s.password && user.Domain.Name == swiftDomain && scope != nil &&
		scope.Project.Name == swiftProject && scope.Project.Domain.Name == swiftDomain
}

func (s *Swift) issue(w http.ResponseWriter, r request) {
	var asked keystoneRequest
	w.Header().Set("Content-Type", "application/json")
	if json.Unmarshal(r.body, &asked) != nil || !s.permitted(asked) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"error": map[string]any{"code": 401, "title": "Unauthorized", "message": "not with " + string(r.body)},
		})
		return
	}
	s.issued++
	token := "gAAAA-" + rand.Text()
	s.tokens[token] = true
	w.Header().Set("X-Subject-Token", token)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
		"expires_at": time.Now().Add(s.Lifetime).UTC().Format("2006-01-02T15:04:05.000000Z"), "catalog": s.Catalog,
	}})
}

func md5Of(content []byte) string {
	sum := md5.Sum(content)
	return hex.EncodeToString(sum[:])
}

func (s *Swift) put(w http.ResponseWriter, r request, name string) {
	content := r.body
	delete(s.segments, name)
	if r.URL.Query().Get("multipart-manifest") == "put" {
		var ok bool
		if content, ok = s.assemble(r.body, name); !ok {
			http.Error(w, "Errors: 404 Not Found", http.StatusBadRequest)
			return
		}
	} else if r.Header.Get("ETag") != md5Of(content) {
		http.Error(w, "Unprocessable Entity", http.StatusUnprocessableEntity)
		return
	}
	s.objects[name] = object{content: content, modified: time.Now()}
	w.Header().Set("ETag", md5Of(content))
	w.WriteHeader(http.StatusCreated)
}

// assemble makes the content of an object of what its manifest names.
func (s *Swift) assemble(body []byte, name string) ([]byte, bool) {
	var manifest []struct {
		Path string
		ETag string
		Size int `json:"size_bytes"`
	}
	if json.Unmarshal(body, &manifest) != nil || len(manifest) == 0 {
		return nil, false
	}
	var whole []byte
	for _, entry := range manifest {
		container, segment, _ := strings.Cut(strings.TrimPrefix(entry.Path, "/"), "/")
		object, found := s.objects[segment]
		if container != s.Bucket || !found || md5Of(object.content) != entry.ETag || len(object.content) != entry.Size {
			return nil, false
		}
		whole = append(whole, object.content...)
		s.segments[name] = append(s.segments[name], segment)
	}
	return whole, true
}

func (s *Swift) get(w http.ResponseWriter, name string) {
	object, found := s.objects[name]
	if !found {
		http.Error(w, "The resource could not be found.", http.StatusNotFound)
		return
	}
	w.Header().Set("ETag", md5Of(object.content))
	if s.segments[name] != nil {
		w.Header().Set("X-Static-Large-Object", "True")
		w.Header().Set("ETag", `"`+md5Of([]byte("of checksums"))+`"`)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(object.content)))
	_, _ = w.Write(object.content)
}

func (s *Swift) remove(w http.ResponseWriter, name string) {
	if _, found := s.objects[name]; !found {
		http.Error(w, "The resource could not be found.", http.StatusNotFound)
		return
	}
	delete(s.objects, name)
	delete(s.segments, name)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Swift) list(w http.ResponseWriter, r request) {
	query := r.URL.Query()
	names := s.sorted(query.Get("prefix"), query.Get("marker"))
	limit, _ := strconv.Atoi(cmp.Or(query.Get("limit"), strconv.Itoa(pageSize)))
	page := []map[string]any{}
	for _, name := range names[:min(len(names), limit)] {
		object := s.objects[name]
		page = append(page, map[string]any{
			"name": name, "bytes": len(object.content), "hash": md5Of(object.content),
			"last_modified": object.modified.UTC().Format("2006-01-02T15:04:05.000000"),
		})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(page)
}
