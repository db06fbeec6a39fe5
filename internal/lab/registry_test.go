package lab

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARegistryServesWhatWasPushed(t *testing.T) {
	r := NewRegistry(t)
	name := r.Push(Image{Files: []File{{Path: "f", Mode: 0o644, Data: []byte("x")}}}, "team/app:1")
	assert.Equal(t, r.Host+"/team/app:1", name)
	r.Push(Image{}, "team/secret:1", "ann")
	for _, tc := range []struct {
		method, path, user, password string
		status                       int
	}{
		{"GET", "/v2/", "", "", 200},
		{"HEAD", "/v2/team/app/manifests/1", "", "", 200},
		{"GET", "/v2/team/app/manifests/1", "", "", 200},
		{"GET", "/v2/team/app/manifests/2", "", "", 404},
		{"GET", "/v2/team/app/blobs/sha256:1", "", "", 404},
		{"GET", "/v2/team/secret/manifests/1", "", "", 401},
		{"GET", "/v2/team/secret/manifests/1", "ann", "guess", 401},
		{"GET", "/v2/team/secret/manifests/1", "eve", RegistryPassword, 401},
		{"GET", "/v2/team/secret/manifests/1", "ann", RegistryPassword, 200},
		{"GET", "/v2/absent/manifests/1", "", "", 404},
		{"GET", "/v2/a/b", "", "", 404},
		{"GET", "/v1", "", "", 404},
		{"PUT", "/v2/team/app/manifests/1", "", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+r.Host+tc.path, nil)
		require.NoError(t, err)
		if tc.user != "" {
			req.SetBasicAuth(tc.user, tc.password)
		}
		answer, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		answer.Body.Close()
		assert.Equal(t, tc.status, answer.StatusCode, tc)
		if by := answer.Header.Get("Docker-Content-Digest"); by != "" && tc.method == "GET" {
			assert.Equal(t, "sha256:"+digest(body), by)
		}
	}
	assert.Equal(t, []string{
		" team/app:1 200", " team/app:1 200", " team/app:2 404", " team/secret:1 401", "ann team/secret:1 401",
		"eve team/secret:1 401", "ann team/secret:1 200", " absent:1 404",
	}, r.Asked())
}
