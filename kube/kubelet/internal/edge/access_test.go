package edge

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
)

// Without an API server, options that require one are errors: the API must not be open
// because there is no server to call.
func TestAccessOfAStandaloneKubelet(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, []byte("no certificate"), 0o600))
	for lines, want := range map[string]string{
		"":                                 "authorization.mode: Webhook requires an API server",
		"authorization: {mode: Webhook}\n": "authorization.mode: Webhook requires an API server",
		"authorization: {mode: RBAC}\n":    `authorization.mode is "RBAC": want Webhook or AlwaysAllow`,
		"authentication: {webhook: {enabled: true}}\n":                                           "authentication.webhook.enabled: there is no API server",
		"authentication: {x509: {clientCAFile: /none/such}}\n":                                   "authentication.x509.clientCAFile: ",
		"authentication: {x509: {clientCAFile: " + ca + "}}\nauthorization: {mode: AlwaysAllow}": "authentication.x509.clientCAFile: ",
	} {
		_, err := newAccess(wingtest.Base(t, wingtest.Standalone(t, lines)), nil, false)
		assert.ErrorContains(t, err, want, lines)
	}
	a, err := newAccess(wingtest.Base(t, wingtest.Standalone(t, "authorization: {mode: AlwaysAllow}\n")), nil, false)
	require.NoError(t, err)
	assert.Empty(t, a.Authenticator, "every request is unauthenticated: 401")
	a, err = newAccess(wingtest.Base(t, wingtest.Standalone(t, "authentication: {anonymous: {enabled: true}}\nauthorization: {mode: AlwaysAllow}\n")), nil, false)
	require.NoError(t, err)
	assert.Equal(t, auth.Chain{auth.Anonymous{}}, a.Authenticator)
	assert.Equal(t, auth.AlwaysAllow{}, a.Authorizer)
	assert.Nil(t, a.ClientCAs, "no client certificate is requested")
	a, err = newAccess(wingtest.Base(t, wingtest.Standalone(t, "")), nil, true)
	require.NoError(t, err, "listeners that do not authenticate need no API server")
	assert.Equal(t, auth.AlwaysAllow{}, a.Authorizer)
}
