package issuer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
)

// serveToken gives the ID token for a code, to who began the log-in. Whatever is not right, the code is used up.
func (i *Issuer) serveToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuseToken(w, "invalid_request", "the form cannot be read")
		return
	}
	values := r.PostForm
	for name := range values {
		if len(values[name]) > 1 {
			refuseToken(w, "invalid_request", name+" is given more than once")
			return
		}
	}
	if values.Get("grant_type") != "authorization_code" {
		refuseToken(w, "unsupported_grant_type", "grant_type must be authorization_code")
		return
	}
	of, ok := i.codes.redeem(values.Get("code"), i.options.Clock.Now())
	if !ok || clientOf(r) != of.request.client.ID || values.Get("redirect_uri") != of.request.redirect ||
		!of.request.isVerifiedBy(values.Get("code_verifier")) {
		refuseToken(w, "invalid_grant", "the code is not good, no longer, or not for who sends it")
		return
	}
	signed, err := i.sign(of)
	if err != nil {
		i.options.Log.Error(err, "Cannot sign a token")
		writeJSON(w, http.StatusInternalServerError, map[string]string{"error": "server_error"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		// Nothing takes the access token; clients of OAuth want one to be there.
		"access_token": randomText(), "token_type": "Bearer", "id_token": signed,
		"expires_in": int(i.options.TokenLifetime.Seconds()), "scope": "openid",
	})
}

// clientOf is who redeems a code. Some libraries first name the client as if it had a secret, which is empty.
func clientOf(r *http.Request) string {
	id, secret, isBasic := r.BasicAuth()
	if !isBasic {
		return r.PostForm.Get("client_id")
	}
	unescaped, err := url.QueryUnescape(id)
	if err != nil || secret != "" {
		return ""
	}
	return unescaped
}

// isVerifiedBy tells whether a verifier is that of the request's challenge.
func (r request) isVerifiedBy(verifier string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return verifierPattern.MatchString(verifier) &&
		subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(r.challenge)) == 1
}

func refuseToken(w http.ResponseWriter, code, message string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": message})
}
