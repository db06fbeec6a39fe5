package kubelet

import (
	"crypto/x509"
	"errors"
	"fmt"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// An access is how clients of the API are authenticated and authorized.
type access struct {
	authenticator auth.Authenticator
	authorizer    auth.Authorizer
	clientCAs     func() *x509.CertPool // nil: client certificates are not requested
}

// newAccess returns the access of the Configuration. open is for listeners that do not
// authenticate.
func newAccess(b base, c *cluster, open bool) (a access, err error) {
	if open {
		return access{authenticator: auth.Chain{}, authorizer: auth.AlwaysAllow{}}, nil
	}
	var chain auth.Chain
	in := b.k.Authentication
	if in.X509.ClientCAFile != "" {
		ca, err := server.NewCAFile(in.X509.ClientCAFile, b.logger)
		if err != nil {
			return a, fmt.Errorf("authentication.x509.clientCAFile: %w", err)
		}
		a.clientCAs = ca.Roots
		chain = append(chain, auth.Certificates{Roots: ca.Roots})
	}
	switch webhook := in.Webhook.Enabled; {
	case c == nil && deref(webhook):
		return a, fmt.Errorf("authentication.webhook.enabled: %w", errNoCluster)
	case c != nil && (webhook == nil || *webhook):
		tokens, err := auth.NewTokens(auth.TokensConfig{
			Reviews: c.conn.TokenReviews.AuthenticationV1().TokenReviews(), TTL: in.Webhook.CacheTTL.Duration, Hooks: b.metrics.api.Tokens(),
		})
		if err != nil {
			return a, err
		}
		chain = append(chain, tokens)
	}
	if deref(in.Anonymous.Enabled) {
		chain = append(chain, auth.Anonymous{})
	}
	a.authenticator = chain
	a.authorizer, err = newAuthorizer(b, c)
	return a, err
}

func newAuthorizer(b base, c *cluster) (auth.Authorizer, error) {
	in := b.k.Authorization
	switch mode := in.Mode; {
	case mode == kubeletconfig.KubeletAuthorizationModeAlwaysAllow:
		return auth.AlwaysAllow{}, nil
	case mode != "" && mode != kubeletconfig.KubeletAuthorizationModeWebhook:
		return nil, fmt.Errorf("authorization.mode is %q: want Webhook or AlwaysAllow", mode)
	case c == nil:
		return nil, errors.Join(errors.New("authorization.mode: Webhook requires an API server; AlwaysAllow, with authentication.x509.clientCAFile, does not"), errNoCluster)
	}
	return auth.NewAccess(auth.AccessConfig{
		Reviews:    c.conn.AccessReviews.AuthorizationV1().SubjectAccessReviews(),
		AllowedTTL: in.Webhook.CacheAuthorizedTTL.Duration, DeniedTTL: in.Webhook.CacheUnauthorizedTTL.Duration, Hooks: b.metrics.api.Access(),
	})
}
