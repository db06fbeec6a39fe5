package shutdown_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/shutdown"
)

func TestOnlyReadersOfTheTokenFileCanBeginAShutdown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	trigger, err := shutdown.NewManual(file)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	if goruntime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	name, token, ok := strings.Cut(strings.TrimSpace(string(text)), ": ")
	require.True(t, ok)
	call := func(method string, header http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/shutdown", nil)
		r.Header = header
		w := httptest.NewRecorder()
		trigger.ServeHTTP(w, r)
		return w
	}
	for _, header := range []http.Header{{}, {name: {"Bearer x"}}, {name: {token + "x"}}} {
		assert.Equal(t, http.StatusUnauthorized, call(http.MethodPost, header).Code)
		assert.Equal(t, http.StatusUnauthorized, call(http.MethodDelete, header).Code)
	}
	assert.JSONEq(t, `{"stopping":false,"done":false}`, call(http.MethodGet, http.Header{}).Body.String())
	assert.Equal(t, http.StatusForbidden, call(http.MethodPost, http.Header{name: {token}, "Sec-Fetch-Site": {"cross-site"}}).Code)
	assert.Equal(t, http.StatusAccepted, call(http.MethodPost, http.Header{name: {token}}).Code)
	assert.JSONEq(t, `{"stopping":true,"done":false}`, call(http.MethodGet, http.Header{}).Body.String())
	assert.Equal(t, http.StatusOK, call(http.MethodDelete, http.Header{name: {token}}).Code)
	_, err = shutdown.NewManual(filepath.Join(file, "token"))
	assert.Error(t, err)
}
