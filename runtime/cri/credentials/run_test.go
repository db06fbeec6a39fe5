package credentials_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

func FuzzResponse(f *testing.F) {
	const head = `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",`
	for _, s := range []string{
		head + `"cacheKeyType":"Image","auth":{"reg.io":{"username":"bob","password":"hunter2"}}}`,
		head + `"cacheKeyType":"Global","cacheDuration":"hunter2"}`,
		head + `"cacheKeyType":"Registry","auth":{"bob:hunter2@reg.io":null}}`,
		`{"kind":"hunter2"}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := credentials.CheckResponse(data); err != nil {
			require.NotContains(t, err.Error(), "hunter2")
		}
	})
}
