package apiserver

import (
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/trellis-garden/trellis/pkg/apiserver/workloadidentity"
)

// tokenOptions are the flags about tokens of workload identities.
type tokenOptions struct {
	// Issuer is the URL under which the tokens' discovery documents are found.
	Issuer string
	// SigningKeyFile holds the private RSA key.
	SigningKeyFile string
	Limits         workloadidentity.Limits
}

func newTokenOptions() tokenOptions {
	return tokenOptions{Limits: workloadidentity.Limits{Default: time.Hour, Min: time.Hour, Max: 48 * time.Hour}}
}

func (o *tokenOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Issuer, workloadidentity.IssuerFlag, o.Issuer,
		"URL that tokens of workload identities name as their issuer. Needed to issue them.")
	flags.StringVar(&o.SigningKeyFile, workloadidentity.SigningKeyFlag, o.SigningKeyFile,
		"File with the private RSA key (PEM) that signs tokens of workload identities. Without it none are issued.")
	flags.DurationVar(&o.Limits.Default, "workload-identity-token-default-expiration", o.Limits.Default,
		"Validity of tokens whose request asks for none.")
	flags.DurationVar(&o.Limits.Min, "workload-identity-token-min-expiration", o.Limits.Min,
		"Shortest validity of tokens; requests for less get this much.")
	flags.DurationVar(&o.Limits.Max, "workload-identity-token-max-expiration", o.Limits.Max,
		"Longest validity of tokens; requests for more get this much.")
}

func (o *tokenOptions) validate() []error {
	var errs []error
	if issuer, err := url.Parse(o.Issuer); err != nil ||
		o.Issuer != "" && (issuer.Scheme != "https" || issuer.Host == "") {
		errs = append(errs, fmt.Errorf("--%s %q: must be a URL such as https://issuer.example.com",
			workloadidentity.IssuerFlag, o.Issuer))
	}
	if (o.Issuer == "") != (o.SigningKeyFile == "") {
		errs = append(errs, fmt.Errorf("--%s and --%s are of use together only", workloadidentity.IssuerFlag,
			workloadidentity.SigningKeyFlag))
	}
	for _, limit := range []struct {
		flag  string
		value time.Duration
	}{{"min", o.Limits.Min}, {"default", o.Limits.Default}, {"max", o.Limits.Max}} {
		if limit.value < time.Duration(securityv1alpha1.MinTokenExpirationSeconds)*time.Second ||
			limit.value > time.Duration(securityv1alpha1.MaxTokenExpirationSeconds)*time.Second {
			errs =
				append(errs, fmt.Errorf("--workload-identity-token-%s-expiration %s: must be between 10 minutes and "+
					"2^32 seconds", limit.flag, limit.value))
		}
	}
	if o.Limits.Min > o.Limits.Max {
		errs =
			append(errs, fmt.Errorf("--workload-identity-token-min-expiration %s is more than "+
				"--workload-identity-token-max-expiration %s", o.Limits.Min, o.Limits.Max))
	}
	return errs
}

// issuer returns nil when no key is given: the subresource then says so.
func (o *tokenOptions) issuer() (*workloadidentity.Issuer, error) {
	if o.SigningKeyFile == "" {
		return nil, nil
	}
	key, err := workloadidentity.ReadKey(o.SigningKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", workloadidentity.SigningKeyFlag, err)
	}
	return workloadidentity.NewIssuer(o.Issuer, key, o.Limits)
}

// publish lets anybody read what verifiers of tokens have to know. It returns nil without an issuer.
func publish(config *genericapiserver.RecommendedConfig,
	issuer *workloadidentity.Issuer) (*workloadidentity.Publication, error) {
	if issuer == nil {
		return nil, nil
	}
	publication, err := issuer.Publish()
	if err != nil {
		return nil, err
	}
	config.Authorization.Authorizer = union.New(publication, config.Authorization.Authorizer)
	return publication, nil
}
