package edge

import (
	"crypto/x509"
	"errors"
	"fmt"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/server"
)

// An access is how clients of the API are authenticated and authorized.
type access struct {
	Authenticator auth.Authenticator
	Authorizer    auth.Authorizer
	ClientCAs     func() *x509.CertPool // nil: client certificates are not requested
}

// newAccess returns the access of the Configuration. open is for listeners that do not
// authenticate.
func newAccess(b stores.Base, c *stores.Cluster, open bool) (a access, err error) {
	if open {
		return access{Authenticator: auth.Chain{}, Authorizer: auth.AlwaysAllow{}}, nil
	}
	var chain auth.Chain
	in := b.Configuration.Authentication
	if in.X509.ClientCAFile != "" {
		ca, err := server.NewCAFile(in.X509.ClientCAFile, b.Logger)
		if err != nil {
			return a, fmt.Errorf("authentication.x509.clientCAFile: %w", err)
		}
		a.ClientCAs = ca.Roots
		chain = append(chain, auth.Certificates{Roots: ca.Roots})
	}
	switch webhook := in.Webhook.Enabled; {
	case c == nil && stores.Deref(webhook):
		return a, fmt.Errorf("authentication.webhook.enabled: %w", stores.ErrNoCluster)
	case c != nil && (webhook == nil || *webhook):
		tokens, err := auth.NewTokens(auth.TokensConfig{
			Reviews: c.Conn.TokenReviews.AuthenticationV1().TokenReviews(), TTL: in.Webhook.CacheTTL.Duration, Hooks: b.Metrics.API.Tokens(),
		})
		if err != nil {
			return a, err
		}
		chain = append(chain, tokens)
	}
	if stores.Deref(in.Anonymous.Enabled) {
		chain = append(chain, auth.Anonymous{})
	}
	a.Authenticator = chain
	a.Authorizer, err = newAuthorizer(b, c)
	return a, err
}

func newAuthorizer(b stores.Base, c *stores.Cluster) (auth.Authorizer, error) {
	in := b.Configuration.Authorization
	switch mode := in.Mode; {
	case mode == kubeletconfig.KubeletAuthorizationModeAlwaysAllow:
		return auth.AlwaysAllow{}, nil
	case mode != "" && mode != kubeletconfig.KubeletAuthorizationModeWebhook:
		return nil, fmt.Errorf("authorization.mode is %q: want Webhook or AlwaysAllow", mode)
	case c == nil:
		return nil, errors.Join(errors.New("authorization.mode: Webhook requires an API server; AlwaysAllow, with authentication.x509.clientCAFile, does not"), stores.ErrNoCluster)
	}
	return auth.NewAccess(auth.AccessConfig{
		Reviews:    c.Conn.AccessReviews.AuthorizationV1().SubjectAccessReviews(),
		AllowedTTL: in.Webhook.CacheAuthorizedTTL.Duration, DeniedTTL: in.Webhook.CacheUnauthorizedTTL.Duration, Hooks: b.Metrics.API.Access(),
	})
}
