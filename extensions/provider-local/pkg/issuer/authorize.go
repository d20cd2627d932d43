package issuer

import (
	"crypto/subtle"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// request is what a client asks for, once it is known to be good.
type request struct {
	client                            Client
	redirect, state, nonce, challenge string
}

const (
	// cookieName is bound to this host and to TLS by its prefix.
	cookieName = "__Host-login"
	// maxParameter bounds state and nonce.
	maxParameter = 1024
)

var (
	//go:embed login.html
	loginText string
	loginPage = template.Must(template.New("login").Parse(loginText))

	// parameters of a request, which the form keeps.
	parameters = []string{
		"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge",
		"code_challenge_method", "prompt",
	}
	challengePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	// verifierPattern is that of RFC 7636.
	verifierPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)
)

// refusal is why a request is not good. One with a code is told to the client.
type refusal struct{ code, message string }

// parse checks the parameters of a request. As long as the place to which it leads is not known to be the client's, the
// browser is led nowhere.
func (i *Issuer) parse(values url.Values) (request, *refusal) {
	for _, name := range parameters {
		if len(values[name]) > 1 {
			return request{}, &refusal{message: name + " is given more than once"}
		}
	}
	index := slices.IndexFunc(i.options.Clients, func(c Client) bool { return c.ID == values.Get("client_id") })
	if index < 0 {
		return request{}, &refusal{message: "client_id is none that is known here"}
	}
	client := i.options.Clients[index]
	if !slices.Contains(client.Redirects, values.Get("redirect_uri")) {
		return request{}, &refusal{message: "redirect_uri is none of this client"}
	}
	wanted := request{
		client: client, redirect: values.Get("redirect_uri"), state: values.Get("state"), nonce: values.Get("nonce"),
		challenge: values.Get("code_challenge"),
	}
	if len(wanted.state) > maxParameter || len(wanted.nonce) > maxParameter {
		wanted.state = ""
		return wanted, &refusal{"invalid_request", "state or nonce is too long"}
	}
	return wanted, wanted.check(values)
}

// check looks at what the client is told about.
func (r request) check(values url.Values) *refusal {
	switch {
	case values.Get("response_type") != "code":
		return &refusal{"unsupported_response_type", "response_type must be code"}
	case !slices.Contains([]string{"", "query"}, values.Get("response_mode")):
		return &refusal{"invalid_request", "response_mode must be query"}
	case !slices.Contains(strings.Fields(values.Get("scope")), "openid"):
		return &refusal{"invalid_scope", "scope must have openid"}
	case values.Get("code_challenge_method") != "S256" || !challengePattern.MatchString(r.challenge):
		return &refusal{"invalid_request", "code_challenge must be one of method S256"}
	case r.state == "":
		return &refusal{"invalid_request", "state must be given"}
	case values.Get("prompt") == "none":
		return &refusal{"login_required", "nobody is remembered here"}
	}
	return nil
}

// leadBack sends the browser to the client with an answer.
func (i *Issuer) leadBack(w http.ResponseWriter, r *http.Request, to request, answer url.Values) {
	target, err := url.Parse(to.redirect)
	if err != nil { // it was parsed when the process began
		http.Error(w, "redirect_uri is not good", http.StatusInternalServerError)
		return
	}
	query := target.Query()
	for name := range answer {
		query.Set(name, answer.Get(name))
	}
	if to.state != "" {
		query.Set("state", to.state)
	}
	query.Set("iss", i.options.URL)
	target.RawQuery = query.Encode()
	http.Redirect(w, r, target.String(), http.StatusSeeOther)
}

// refuse answers a request that is not good, and tells whether it was.
func (i *Issuer) refuse(w http.ResponseWriter, r *http.Request, wanted request, why *refusal) bool {
	switch {
	case why == nil:
		return false
	case why.code == "":
		http.Error(w, why.message, http.StatusBadRequest)
	default:
		i.leadBack(w, r, wanted, url.Values{"error": {why.code}, "error_description": {why.message}})
	}
	return true
}

// form is what the page shows.
type form struct {
	Parameters           map[string]string
	Client, Token, Error string
	Users                []User
}

// serveForm asks for name and password.
func (i *Issuer) serveForm(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	wanted, why := i.parse(values)
	if i.refuse(w, r, wanted, why) {
		return
	}
	token := randomText()
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	i.writeForm(w, http.StatusOK, wanted, values, token, "")
}

func (i *Issuer) writeForm(w http.ResponseWriter, status int, wanted request, values url.Values,
	token, message string) {
	content := form{
		Parameters: map[string]string{}, Client: wanted.client.ID, Token: token, Error: message, Users: landscapeUsers,
	}
	for _, name := range parameters {
		if values.Get(name) != "" {
			content.Parameters[name] = values.Get(name)
		}
	}
	// Browsers hold the way back, to which the form leads, against form-action as well.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "+
		"form-action 'self' "+originOf(wanted.redirect))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, content)
}

func originOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// logIn checks name and password, and leads back with a code.
func (i *Issuer) logIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	values := r.PostForm
	wanted, why := i.parse(values)
	if i.refuse(w, r, wanted, why) {
		return
	}
	cookie, err := r.Cookie(cookieName)
	token := values.Get("token")
	if err != nil || token == "" || subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(token)) != 1 {
		http.Error(w, "this form is of another browser, or too old: begin again", http.StatusForbidden)
		return
	}
	now := i.options.Clock.Now()
	if !i.limits.allow(values.Get("username"), now) {
		i.writeForm(w, http.StatusTooManyRequests, wanted, values, token, "Too many attempts: wait a minute.")
		return
	}
	user, ok := i.state.Load().passwords.check(values.Get("username"), values.Get("password"))
	if !ok {
		i.options.Log.Info("A log-in was refused", "client", wanted.client.ID)
		i.writeForm(w, http.StatusUnauthorized, wanted, values, token, "Name or password is wrong.")
		return
	}
	code, ok := i.codes.issue(grant{user: user, request: wanted, at: now})
	if !ok {
		i.writeForm(w, http.StatusServiceUnavailable, wanted, values, token, "Too many log-ins: wait a minute.")
		return
	}
	i.leadBack(w, r, wanted, url.Values{"code": {code}})
}
