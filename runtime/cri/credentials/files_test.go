package credentials_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

func write(t *testing.T, path, data string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
}

// config returns a config.json with a user of reg.io.
func config(user string) string { return `{"auths":{"reg.io":{"username":"` + user + `"}}}` }

func TestDefaultPaths(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are written with slashes")
	}
	assert.Equal(t, []string{
		"/var/lib/kubelet/config.json", "/work/config.json", "/root/.docker/config.json", "/.docker/config.json",
		"/var/lib/kubelet/.dockercfg", "/work/.dockercfg", "/root/.dockercfg", "/.dockercfg",
	}, credentials.DefaultPaths("/var/lib/kubelet", "/work", "/root"))
	assert.Equal(t, []string{"/.docker/config.json", "/.dockercfg"}, credentials.DefaultPaths("", "", ""))
}

func TestTheFirstFileThatCanBeReadCounts(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a", "config.json"), filepath.Join(dir, "b", "config.json"), filepath.Join(dir, ".dockercfg")}
	files, err := credentials.NewFiles(credentials.FilesConfig{Paths: paths})
	require.NoError(t, err)
	lookup := func() ([]string, error) {
		got, err := files.Lookup(t.Context(), "reg.io/app", nil)
		return users(got), err
	}

	got, err := lookup()
	require.NoError(t, err)
	assert.Empty(t, got, "no file")

	write(t, paths[2], `{"reg.io":{"username":"old"}}`)
	got, err = lookup()
	require.NoError(t, err)
	assert.Equal(t, []string{"old"}, got, "a .dockercfg")

	write(t, paths[1], config("b"))
	got, err = lookup()
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, got, "a file before it")

	write(t, paths[0], `{"auths":{"hunter2`)
	got, err = lookup()
	require.Error(t, err)
	assert.Equal(t, "credentials: file "+paths[0]+": not JSON, at byte 18", err.Error())
	assert.Equal(t, []string{"b"}, got, "the first cannot be read")

	// The second config has the same size and time; only its content differs.
	write(t, paths[0], config("x"))
	got, err = lookup()
	require.NoError(t, err)
	assert.Equal(t, []string{"x"}, got)
	write(t, paths[0], config("y"))
	got, err = lookup()
	require.NoError(t, err)
	assert.Equal(t, []string{"y"}, got, "the file was changed")

	creds, err := files.Lookup(t.Context(), "reg.io/app", nil)
	require.NoError(t, err)
	assert.Equal(t, credentials.Source{File: paths[0]}, creds[0].Source)

	require.NoError(t, os.Remove(paths[0]))
	got, err = lookup()
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, got, "the file was removed")
}

func TestFilesThatAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.json")
	write(t, big, strings.Repeat(" ", 5<<20))
	files, err := credentials.NewFiles(credentials.FilesConfig{Paths: []string{dir, big}})
	require.NoError(t, err)
	got, err := files.Lookup(t.Context(), "reg.io/app", nil)
	require.Error(t, err)
	assert.Empty(t, got)
	assert.Contains(t, err.Error(), "credentials: file "+dir+": not a regular file")
	assert.Contains(t, err.Error(), "credentials: file "+big+": too large: more than 4194304 bytes")

	_, err = files.Lookup(t.Context(), "Not An Image", nil)
	require.ErrorContains(t, err, "couldn't parse image name")
	_, err = credentials.NewFiles(credentials.FilesConfig{Paths: []string{"x", ""}})
	require.EqualError(t, err, "credentials: FilesConfig.Paths[1] is empty")
}

func TestUnsupportedHelpersAreReportedOnce(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "config.json")
	write(t, path, `{"auths":{"reg.io":{"username":"bob"}},"credsStore":"desktop","credHelpers":{"gcr.io":"gcloud"}}`)
	files, err := credentials.NewFiles(credentials.FilesConfig{Paths: []string{path}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	for range 3 {
		got, err := files.Lookup(t.Context(), "reg.io/app", nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"bob"}, users(got))
	}
	assert.Equal(t, 1, strings.Count(log.String(), "\n"))
	assert.Contains(t, log.String(), `helpers="desktop gcloud"`)
}
