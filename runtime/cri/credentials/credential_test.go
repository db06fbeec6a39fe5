package credentials_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

func TestACredentialIsPrintedWithoutSecrets(t *testing.T) {
	c := credentials.Credential{
		Username: "hunter2-user", Password: "hunter2-password", Auth: "hunter2-auth", Email: "hunter2-mail",
		IdentityToken: "hunter2-id", RegistryToken: "hunter2-reg",
		Source: credentials.Source{Kind: credentials.SourceSecret, Namespace: "shop", Name: "regcred", UID: "u"},
	}
	keyring, err := credentials.FromSecrets([]v1.Secret{jsonSecret("s", `{"auths":{"reg.io":{"username":"hunter2","password":"hunter2"}}}`)})
	require.NoError(t, err)
	var log bytes.Buffer
	for _, v := range []any{c, &c, []credentials.Credential{c}, []*credentials.Credential{&c}, map[string]credentials.Credential{"k": c},
		struct{ C credentials.Credential }{c}, keyring, credentials.Union{keyring}, struct{ K credentials.Keyring }{keyring}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
			fmt.Fprintf(&log, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		doc, err := json.Marshal(v)
		require.NoError(t, err)
		log.Write(doc)
	}
	assert.NotContains(t, log.String(), "hunter2")
	assert.NotContains(t, log.String(), fmt.Sprintf("%x", "hunter2"))
	assert.Equal(t, "credential of secret shop/regcred", c.String())
	assert.Equal(t, "credential of secret shop/regcred", fmt.Sprintf("%#v", c))
}

func TestASourceNamesItself(t *testing.T) {
	for want, s := range map[string]credentials.Source{
		"the node":              {},
		"file /etc/config.json": {File: "/etc/config.json"},
		"secret shop/regcred":   {Kind: credentials.SourceSecret, Namespace: "shop", Name: "regcred"},
		"plugin ecr":            {Plugin: "ecr"},
		"plugin ecr for service account shop/web": {Kind: credentials.SourceServiceAccount, Namespace: "shop", Name: "web", Plugin: "ecr"},
	} {
		assert.Equal(t, want, s.String())
	}
	assert.Equal(t, "node", credentials.SourceNode.String())
	assert.Equal(t, "SourceKind(9)", credentials.SourceKind(9).String())
}

// img-5, img-6: the value in the records of a kubelet, computed with sha256sum.
func TestAHashIsTheKubelets(t *testing.T) {
	c := credentials.Credential{Username: "bob", Password: "pw"}
	// printf '{"username":"bob","password":"pw"}' | sha256sum
	assert.Equal(t, "acce188f023e8abbfda9f553b787937990178a5d5eafef1dc5ca3f4560767bf1", c.Hash())
	d := c
	d.Source.Name = "elsewhere"
	assert.Equal(t, c.Hash(), d.Hash())
	d.IdentityToken = "t"
	assert.NotEqual(t, c.Hash(), d.Hash())
}

type keyringFunc func(context.Context, string, *v1.Pod) ([]credentials.Credential, error)

func (f keyringFunc) Lookup(ctx context.Context, image string, pod *v1.Pod) ([]credentials.Credential, error) {
	return f(ctx, image, pod)
}

func TestAUnionAsksAllInOrder(t *testing.T) {
	one := func(user string, err error) credentials.Keyring {
		return keyringFunc(func(context.Context, string, *v1.Pod) ([]credentials.Credential, error) {
			return []credentials.Credential{{Username: user}}, err
		})
	}
	bad := errors.New("bad")
	got, err := credentials.Union{one("secret", nil), nil, one("file", bad), one("plugin", nil)}.Lookup(t.Context(), "reg.io/app", nil)
	require.ErrorIs(t, err, bad)
	assert.Equal(t, []string{"secret", "file", "plugin"}, users(got))

	ctx, cancel := context.WithCancel(t.Context())
	last := keyringFunc(func(context.Context, string, *v1.Pod) ([]credentials.Credential, error) {
		cancel()
		return nil, nil
	})
	got, err = credentials.Union{one("secret", nil), last, one("plugin", nil)}.Lookup(ctx, "reg.io/app", nil)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"secret"}, users(got))
}
